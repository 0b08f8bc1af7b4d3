/** The browser of the bench of the page. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

export const TOKEN = 'the-token-of-the-bench';
const SIZE = { width: 1440, height: 900 };

/** Runs `use(page)` with a page that nobody has used before. */
export async function withPage(use) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: chromiumPath(), args });
  try {
    const page = await browser.newPage({ viewport: SIZE });
    await page.addInitScript((token) => sessionStorage.setItem('holdfast.token', token), TOKEN);
    return await use(page);
  } finally {
    await browser.close();
  }
}

function chromiumPath() {
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'chromium'))
    .find(isExecutable);
  if (found === undefined)
    throw new Error('chromium is not on the PATH (Debian: apt-get install chromium)');
  return found;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
