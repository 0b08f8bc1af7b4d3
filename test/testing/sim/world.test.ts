import { describe, expect, it } from 'vitest';
import regressions from '../../../sim/regressions.json' with { type: 'json' };
import {
  draw,
  type Fault,
  INTERESTING_STATES,
  shrink,
  simulate,
  type WorldOptions,
} from '../../../testing/sim/index.ts';

/** So many hours are simulated here; `npm run sim` has more. */
const WORLDS = 24;
const LONG = { timeout: 300_000 };

describe('a simulated world', () => {
  it.each(regressions as { broke: string; options: WorldOptions }[])(
    'K-01 keeps the promise that it once broke: $broke',
    LONG,
    async (found) => {
      const { violation } = await simulate(found.options);
      expect(violation).toBeNull();
    },
  );

  it(
    'K-01 K-02 K-04 K-07 K-11 K-15 SC-001 keeps every promise, whatever goes wrong in it',
    LONG,
    async () => {
      const kinds = new Set<string>();
      for (let seed = 1; seed <= WORLDS; seed++) {
        const report = await simulate({ seed, hours: 1 });
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        expect(report.simulatedMs).toBeGreaterThan(3_600_000);
        for (const [name] of report.counters) kinds.add(name);
      }
      // Few worlds do not meet everything, but what they meet is not all the same.
      const met = INTERESTING_STATES.filter((state) => kinds.has(state));
      expect(met.length).toBeGreaterThanOrEqual(INTERESTING_STATES.length * 0.8);
    },
  );

  it(
    'is the same for the same seed, to the last command, and another for another',
    LONG,
    async () => {
      const first = await simulate({ seed: 7, hours: 0.3 });
      const other = await simulate({ seed: 8, hours: 0.3 });
      const again = await simulate({ seed: 7, hours: 0.3 });
      expect([again.digest, again.steps]).toEqual([first.digest, first.steps]);
      expect([...again.counters]).toEqual([...first.counters]);
      expect(other.digest).not.toBe(first.digest);
    },
  );

  it(
    'W-01 W-02 W-05 W-10 W-13 keeps every promise about workflows, and is the same for the same seed there, too',
    LONG,
    async () => {
      const counters = new Set<string>();
      for (let seed = 1; seed <= 4; seed++) {
        const options = { seed, hours: 0.5, workflows: 2 };
        const report = await simulate(options);
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name] of report.counters) counters.add(name);
        if (seed > 1) continue;
        const again = await simulate(options);
        expect([again.digest, again.steps]).toEqual([report.digest, report.steps]);
      }
      for (const name of ['result heard', 'redelivered', 'tried again', 'handoff claimed'])
        expect(counters).toContain(name);
    },
  );

  it(
    'I-05 I-06 I-07 I-13 I-14 I-20 keeps every promise about intents, and is the same for the same seed there, too',
    LONG,
    async () => {
      const counters = new Set<string>();
      for (let seed = 1; seed <= 4; seed++) {
        const options = { seed, hours: 0.3, intents: 4 };
        const report = await simulate(options);
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name] of report.counters) counters.add(name);
        if (seed > 1) continue;
        const again = await simulate(options);
        expect([again.digest, again.steps]).toEqual([report.digest, report.steps]);
      }
      for (const name of ['replayed', 'session ended', 'replayed after an unknown outcome'])
        expect(counters).toContain(name);
      for (const name of ['stopped while STARTING', 'stopped while RUNNING', 'session recovered'])
        expect(counters).toContain(name);
    },
  );

  it('I-13 brings sessions to their end whose start the stream has lost', LONG, async () => {
    const ways = [0, 0.5, 0.9].map((size, i) =>
      fault('starts are lost', { atMs: 30_000 * i, forMs: 20_000, size }),
    );
    const options: WorldOptions = {
      ...{ seed: 1, hours: 0.1, intents: 6 },
      episodes: [{ lastsMs: 100_000, faults: ways }],
    };
    const { violation, counters } = await simulate(options);
    expect(violation).toBeNull();
    expect(counters.get('start lost')).toBeGreaterThan(0);
    expect(counters.get('republished')).toBeGreaterThan(0);
  });

  it('I-08 I-14 brings sessions to their end whose worker had no time to', LONG, async () => {
    const faults = Array.from({ length: 24 }, (_, i) =>
      fault('worker is replaced', { atMs: 4_000 * i, seat: i % 3, size: (i % 5) / 20 }),
    );
    const options: WorldOptions = {
      ...{ seed: 2, hours: 0.1, intents: 6 },
      episodes: [{ lastsMs: 100_000, faults }],
    };
    const { violation, counters } = await simulate(options);
    expect(violation).toBeNull();
    expect(counters.get('pipeline left behind')).toBeGreaterThan(0);
  });

  it('I-13 starts nothing for clients that have gone while it was frozen', LONG, async () => {
    const faults = Array.from({ length: 12 }, (_, i) =>
      fault('freeze', { atMs: 8_000 * i, seat: i % 3, forMs: 8_000 }),
    );
    const options: WorldOptions = {
      ...{ seed: 1, hours: 0.1, intents: 6 },
      episodes: [{ lastsMs: 100_000, faults }],
    };
    const { violation, counters } = await simulate(options);
    expect(violation).toBeNull();
    expect(counters.get('start read when its client had gone')).toBeGreaterThan(0);
  });

  it(
    'K-15 lets two work at once where quarantine is off: found, narrowed down to what it needs, and drawn',
    LONG,
    async () => {
      const forget = (atMs: number) => fault('store restarts empty', { atMs, forMs: 200 });
      const silence = (atMs: number, seat: number) => fault('cut', { atMs, seat, forMs: 25_000 });
      const irrelevant = [fault('set clock', { atMs: 1_000 }), fault('slow', { atMs: 2_000 })];
      const faults = [...irrelevant, silence(40_000, 0), silence(40_000, 1), forget(41_000)];
      const options: WorldOptions = {
        ...{ seed: 3, hours: 0.2, instances: 3, targets: 5, ttlMs: 30_000, quarantine: 'off' },
        episodes: [{ lastsMs: 100_000, faults }],
      };
      const report = await simulate(options);
      expect(report.violation).toMatchObject({ invariant: 'exclusion' });
      const { report: least, tries } = await shrink(options, report);
      const kinds = least.episodes.flatMap((episode) => episode.faults.map(({ kind }) => kind));
      expect(kinds).toEqual(['store restarts empty']);
      expect(tries).toBeLessThan(40);
      const drawing = draw(least);
      expect(drawing).toMatch(/^nemesis +!/m);
      expect(drawing).toMatch(/^i\d\.1 +\.*=+/m);
      expect(drawing).toMatch(/exclusion: .* both may work on (poll|lease):\w+$/m);
      expect((await simulate({ ...options, quarantine: 'on' })).violation).toBeNull();
    },
  );
});

function fault(kind: Fault['kind'], given: Partial<Fault>): Fault {
  return { kind, atMs: 0, seat: 0, forMs: 5_000, size: 0.5, point: 'clock', ...given };
}
