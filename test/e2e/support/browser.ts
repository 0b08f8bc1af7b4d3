/** A real browser, of the Debian package `chromium`; one per file of tests, and a context of its own for each test. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { pathOf } from '../../support/require-redis.ts';

/** Screenshots are kept here, to be looked at: `test/e2e/shots`, which is not in the repository. */
const SHOTS = fileURLToPath(new URL('../shots/', import.meta.url));
const START_MS = 30_000;
/** On a machine that does something else, too. */
const PATIENCE_MS = 20_000;

const SIZES = {
  desk: { width: 1440, height: 900 },
  phone: { width: 390, height: 844 },
} as const;

export interface Look {
  readonly theme?: 'light' | 'dark';
  readonly size?: keyof typeof SIZES;
}

/** Starts a browser before the tests of a file, and ends it after them. */
export function withBrowser(): { open(look?: Look): Promise<Visit> } {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: pathOf('chromium', process.env.PATH) ?? 'chromium',
      // There is nobody to protect root from in a container of tests.
      args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
      timeout: START_MS,
    });
  }, START_MS);
  afterAll(() => browser?.close());
  return {
    async open({ theme = 'light', size = 'desk' } = {}) {
      if (browser === undefined) throw new Error('the browser did not start');
      const context = await browser.newContext({ colorScheme: theme, viewport: SIZES[size] });
      context.setDefaultTimeout(PATIENCE_MS);
      return new Visit(context, await context.newPage());
    },
  };
}

/** One person at the page. Whatever the page complains about fails the test when it is over. */
export class Visit implements AsyncDisposable {
  readonly page: Page;
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;

  constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on('pageerror', ({ message }) => this.complaints.push(message));
    page.on('console', (message) => {
      // What the network says of a server that was killed is what the test is about, not a fault of the page.
      const isNetwork = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isNetwork) this.complaints.push(message.text());
    });
  }

  /** A picture of what is seen, for people to look at. */
  async keep(name: string): Promise<void> {
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
    expect(this.complaints).toEqual([]);
  }
}
