/** The report of a time as a file. The token travels in a header, so the browser cannot follow a link to it. */
import { client } from './access.ts';

/** The address of the file is needed until the browser has begun to save it. */
const KEPT_MS = 60_000;

export async function saveReport(fromMs: number, toMs: number): Promise<void> {
  const from = new Date(Math.floor(fromMs / 1_000) * 1_000).toISOString();
  const to = new Date(Math.ceil(toMs / 1_000) * 1_000).toISOString();
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const page = await client.report({ from, to, zone });
  const href = URL.createObjectURL(new Blob([page], { type: 'text/html' }));
  const link = document.createElement('a');
  link.href = href;
  link.download = `holdfast-${from.slice(0, 16).replace(/[T:]/g, '-')}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
}
