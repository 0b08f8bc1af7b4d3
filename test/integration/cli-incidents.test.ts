import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { Emitter } from '../../src/core/events.ts';
import { systemRandom } from '../../src/core/random.ts';
import { openStore } from '../../src/store/open-store.ts';
import { LogWriter, NOON } from '../incident/logged.ts';
import { cli, privateFolder, type Result } from './support/cli.ts';

const folder = privateFolder();
const clean = { url: `sqlite:${join(folder, 'clean.db')}` };
const bad = { url: `sqlite:${join(folder, 'bad.db')}` };
const TIME = ['--from', '2026-06-01T11:59:00Z', '--to', '2026-06-01T12:10:00Z'];
const env = { TZ: 'Europe/Berlin' };

beforeAll(async () => {
  const log = new LogWriter()
    .acquired(0, 'ana', { key: '<device>' })
    .ended('released', 5_000, 'ana', { since: 0, key: '<device>' })
    .acquired(6_000, 'ben', { key: '<device>' });
  await write(clean.url, log);
  log.acquired(7_000, 'cyd', { key: '<device>' });
  log.ended('released', 9_000, 'ben', { since: 6_000, key: '<device>' });
  await write(bad.url, log);
});

/** As instances would have written it. */
async function write(url: string, log: LogWriter): Promise<void> {
  const options = { clock: systemClock, random: systemRandom, events: new Emitter() };
  const { store } = await openStore(url, options);
  const entries = log.events.map(({ position: _, ...entry }) => entry);
  await store.log.append(entries, { timeoutMs: 5_000 });
  await store.close();
}

function sink(name: string, ...writes: readonly (readonly [ms: number, fence: number])[]): string {
  const path = join(folder, name);
  const lines = writes.map(([ms, since]) =>
    JSON.stringify({ at: NOON + ms, key: '<device>', fence: fenceOf(since), accepted: true }),
  );
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

function fenceOf(ms: number): number {
  return (NOON + ms) * 1_000;
}

const parsed = ({ stdout }: Result) => JSON.parse(stdout);

describe.concurrent('holdfast verify', () => {
  it('B-29 says that there is no contradiction, and what the log cannot tell', async () => {
    const { code, stdout, stderr } = await cli(['verify'], { at: clean, env });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^no contradiction found in 2 tenures of 1 key, in all of the log \(Europe\/Berlin\)\n/,
    );
    expect(stdout).toContain('This is testimony, not proof');
    expect(stdout).toContain('What the log cannot tell\n- 1 tenure has no end in the log');
  });

  it('B-29 names a contradiction with its entries, and exits with 80', async () => {
    const { code, stdout } = await cli(['verify', ...TIME], { at: bad, env });
    expect(code).toBe(80);
    expect(stdout).toMatch(/^1 contradiction in 3 tenures of 1 key, 2026-06-01 13:59:00 to 14:10/);
    expect(stdout).toContain('<device> (overlap): cyd was granted the key while ben could still');
    expect(stdout).toMatch(/2026-06-01 14:00:06\.002 {2}ben took <device> \(fence \d+\)/);
    const json = await cli(['verify', '--json'], { at: bad, env });
    expect(json.code).toBe(80);
    expect(parsed(json)).toMatchObject({
      verdict: 'contradiction',
      basis: 'testimony',
      contradictions: [{ kind: 'overlap', key: '<device>', events: [{}, {}, {}] }],
    });
  });

  it('B-29 reads what sinks recorded', async () => {
    const good = sink('good.jsonl', [500, 0], [6_500, 6_000]);
    const fine = await cli(['verify', '--sink', good], { at: clean, env });
    expect(fine.code).toBe(0);
    expect(fine.stdout).toContain('and 2 records of sinks');
    const late = sink('late.jsonl', [9_000, 0]);
    const { code, stdout } = await cli(['verify', '--sink', good, late], { at: clean, env });
    expect(code).toBe(80);
    expect(stdout).toContain('(write-outside-tenure): the sink accepted a write with fence');
    expect(stdout).toContain(`${late}:1 accepted a write`);
  });

  it('checks one key, and a time, alone', async () => {
    const other = await cli(['verify', '--key', 'other', '--json'], { at: bad });
    expect([other.code, parsed(other).keys]).toEqual([0, 0]);
    const last = await cli(['verify', '--last', '1m'], { at: bad });
    expect(last.code).toBe(0);
  });

  it.each([
    [['verify', '--from', 'lunch'], /^holdfast: --from is "lunch": a time is one of today/],
    [['verify', '--last', '1m', '--from', '03:10'], /^holdfast: --last is "1m": give --last or/],
    [['verify', '--tolerance', 'much'], /^holdfast: --tolerance is "much": a duration/],
    [['verify', '--sink', 'absent.jsonl'], /--sink is "absent.jsonl": the file cannot be read/],
    [['report'], /^holdfast: give --out FILE for the page, or --json/],
    [['report', '--out', '/nowhere/x.html'], /--out is "\/nowhere\/x.html": the file cannot/],
  ])('refuses wrong use: %j', async (args, message) => {
    const { code, stderr } = await cli(args, { at: clean });
    expect(code).toBe(64);
    expect(stderr).toMatch(message);
  });
});

describe.concurrent('holdfast report', () => {
  it('writes a page, and prints the same as JSON', async () => {
    const out = join(folder, 'incident.html');
    const args = ['report', ...TIME, '--out', out];
    const { code, stdout } = await cli(args, { at: bad, env });
    expect(code).toBe(0);
    expect(stdout).toBe(
      `Wrote ${out}: 2026-06-01 13:59:00 to 14:10:00 (Europe/Berlin), 3 tenures of 1 key, 1 contradiction.\n`,
    );
    const page = readFileSync(out, 'utf8');
    expect(page).toContain('<strong>1 contradiction</strong>');
    expect(page).toContain('&lt;device&gt;');
    const json = await cli(['report', ...TIME, '--json'], { at: bad, env });
    expect(json.code).toBe(0);
    expect(parsed(json)).toMatchObject({
      zone: 'Europe/Berlin',
      keys: [{ key: '<device>', tenures: [{}, {}, {}] }],
      verification: { contradictions: [{ kind: 'overlap' }] },
    });
  });
});
