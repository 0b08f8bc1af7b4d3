import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What has been written for a session so far: the parts that its list names, how often it began anew, and their bytes. */
export function playlistOf(folder, session) {
  const own = join(folder, 'hls', session);
  const none = { parts: 0, beginnings: 0, bytes: 0 };
  try {
    const lines = readFileSync(join(own, 'index.m3u8'), 'utf8').split('\n');
    const files = new Set(readdirSync(own));
    const parts = lines.filter((line) => line.endsWith('.ts'));
    const missing = parts.find((part) => !files.has(part));
    if (missing !== undefined) throw new Error(`${own} has no ${missing}`);
    return {
      parts: parts.length,
      beginnings: lines.filter((line) => line === '#EXT-X-DISCONTINUITY').length,
      bytes: parts.reduce((sum, part) => sum + statSync(join(own, part)).size, 0),
    };
  } catch (error) {
    if (error.code === 'ENOENT') return none;
    throw error;
  }
}
