import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type Choice,
  type Figures,
  judge,
  shown,
  shownShare,
} from '../../docs/.vitepress/theme/timings-choice.ts';
import { TestBed } from '../../testing/index.ts';
import { readSource } from '../support/source-tree.ts';
import { importsOf } from '../support/tidy-rules.ts';

const NOTHING: Choice = {
  ...{ kind: 'lease', ttl: '', stop: '' },
  ...{ renewEvery: '', guard: '', operationTimeout: '' },
};

function figures(choice: Partial<Choice>): Figures {
  const verdict = judge({ ...NOTHING, ...choice });
  if (!verdict.ok) throw new Error(verdict.message);
  return verdict.figures;
}

describe('the calculator of timings', () => {
  it('shows the product’s own defaults where nothing is said', () => {
    expect(figures({})).toMatchObject({
      ...{ ttlMs: 30_000, renewEveryMs: 10_000, guardMs: 1_500, operationTimeoutMs: 5_000 },
      ...{ validMs: 28_500, stopMs: 0, crashLeastMs: 20_000, crashMostMs: 30_000 },
      ...{ outageMs: 12_500, freezeMs: 18_500, drift: 0.05, quarantineMs: 31_000 },
      requestsPerMinute: 6,
    });
  });

  it('shows what the product says of what it refuses', () => {
    const message = (choice: Partial<Choice>) => {
      const verdict = judge({ ...NOTHING, ...choice });
      return verdict.ok ? 'accepted' : verdict.message;
    };
    expect(message({ ttl: '30s', stop: '5s' })).toContain(
      'three operations of 5000 ms and a guard of 6500 ms need 21500 ms: raise ttl, or lower',
    );
    expect(message({ ttl: '30' })).toContain('a duration is');
    expect(message({ ttl: '1ms' })).toContain('a TTL is from 600 ms');
    expect(message({ guard: '1s', stop: '1s' })).toContain('longer than the 1000 ms');
    expect(message({ kind: 'command', ttl: '10s', stop: '9s' })).toContain('leave time to renew');
  });

  it('reckons with the time that stopping takes, and a command’s grace', () => {
    const stopping = figures({ ttl: '30s', stop: '5s', operationTimeout: '4s' });
    expect(stopping).toMatchObject({ guardMs: 6_500, stopMs: 5_000, drift: 0.05 });
    const command = figures({ kind: 'command' });
    expect(command).toMatchObject({ ttlMs: 30_000, guardMs: 7_000, stopMs: 5_000 });
  });

  it('ignores choices that do not apply to a command', () => {
    expect(figures({ kind: 'command', guard: '29s' })).toEqual(figures({ kind: 'command' }));
  });

  it('says durations and shares as people do', () => {
    expect([600, 28_500, 90_000, 43_200_000].map(shown)).toEqual([
      ...['600 ms', '28.5 s', '1.5 min', '12 h'],
    ]);
    expect([0.05, 0.1666, 0.000_035].map(shownShare)).toEqual(['5 %', '17 %', '0.0035 %']);
  });

  it('needs nothing that a browser lacks', () => {
    const seen = new Set<string>();
    const foreign: string[] = [];
    const visit = (path: string) => {
      if (seen.has(path)) return;
      seen.add(path);
      for (const { node, specifier } of importsOf(readSource(path))) {
        if (/^(import|export) type\b/.test(node.getText())) continue;
        if (specifier.startsWith('.'))
          visit(new URL(specifier, `file:///${path}`).pathname.slice(1));
        else foreign.push(`${path}: ${specifier}`);
      }
    };
    visit('docs/.vitepress/theme/timings-choice.ts');
    expect(foreign).toEqual([]);
    expect([...seen].sort()).toEqual([
      'docs/.vitepress/theme/timings-choice.ts',
      ...['src/core/duration.ts', 'src/core/errors.ts', 'src/core/loss-reason.ts'],
      ...['src/core/time-text.ts', 'src/core/validity.ts'],
      'src/lease/timings.ts',
      'src/store/port/keyspaces.ts',
    ]);
  });
});

describe('what the calculator says of an outage', () => {
  /** The store hangs from right before a renewal is due. */
  async function survives(choice: Partial<Choice>, outageMs: number): Promise<boolean> {
    const { renewEveryMs, ttlMs, operationTimeoutMs } = figures(choice);
    const bed = await TestBed.open();
    const { holdfast, faults } = await bed.join('ana', { maxTtl: '12h' });
    const timings = { ttl: ttlMs, renewEvery: renewEveryMs, operationTimeout: operationTimeoutMs };
    const result = await holdfast.acquire('k', timings);
    if (!result.ok) throw new Error(result.reason);
    // Renewals come up to a tenth early by chance; the worst moment for an outage is right before one.
    const renewed = new Promise<void>((resolve) => holdfast.on('lease.renewed', () => resolve()));
    await bed.outcome(renewed);
    await bed.clock.advance(renewEveryMs * 0.9 - 60);
    faults.hang = true;
    await bed.clock.advance(outageMs);
    faults.hang = false;
    await bed.clock.advance(ttlMs);
    const isHeld = result.lease.isHeld();
    await bed.close();
    return isHeld;
  }

  it.each([{ ttl: '30s' }, { ttl: '3s' }, { ttl: '600ms' }, { ttl: '5m' }])(
    'is so: with $ttl one of that length costs no lease, one as long as the TTL does',
    async (choice) => {
      const { outageMs, ttlMs } = figures(choice);
      expect(await survives(choice, outageMs)).toBe(true);
      expect(await survives(choice, ttlMs)).toBe(false);
    },
  );
});

describe('the recipes of docs/timings.md', () => {
  it('nine times the time to stop, and at least 2 s, is always accepted', () => {
    for (const stopMs of [0, 1, 100, 222, 223, 1_000, 5_000, 30_000, 3_600_000]) {
      const ttl = `${Math.max(2_000, 9 * stopMs)}ms`;
      expect(judge({ ...NOTHING, ttl, stop: `${stopMs}ms` }).ok, ttl).toBe(true);
    }
  });

  it('1.5 × F + 12 s is always enough for an outage of F', () => {
    for (let outageMs = 0; outageMs < 600_000; outageMs += 500)
      expect(figures({ ttl: `${1.5 * outageMs + 12_000}ms` }).outageMs).toBeGreaterThan(outageMs);
  });
});

describe('the table of choices in docs/timings.md', () => {
  const page = readFileSync(new URL('../../docs/timings.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `\{ (.+?) \}`(.*)\|$/gm)];

  it('has some', () => {
    expect(rows.length).toBeGreaterThan(5);
  });

  it.each(rows.map(([, options = '', rest = '']) => ({ options, rest })))(
    'says of { $options } what the product does',
    ({ options, rest }) => {
      const said = [...options.matchAll(/(\w+): '(\w+)'/g)].map(([, name, text]) => [name, text]);
      const of = figures(Object.fromEntries(said));
      const cells = rest.split('|').map((cell) => cell.trim());
      expect(cells.slice(1, 8)).toEqual([
        ...[of.renewEveryMs, of.operationTimeoutMs, of.guardMs].map(shown),
        `${shown(of.crashLeastMs)} to ${shown(of.crashMostMs)}`,
        ...[of.outageMs].map(shown),
        shownShare(of.drift),
        `${Math.round(of.requestsPerMinute * 10) / 10}`,
      ]);
    },
  );
});
