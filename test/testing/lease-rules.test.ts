import { describe, expect, it } from 'vitest';
import { modelRefusals } from '../../chaos/model-trace.ts';
import { LeaseModel, type ModelEvent } from '../../testing/model/rules.ts';
import { stepsOf, tell, traceOf } from '../../testing/model/story.ts';

const SETTING = { boundMs: 30_000, drift: 0.002, slackMs: 2 };
const key = 'job';
const [ana, ben] = ['ana', 'ben'];
const granted = { what: 'granted', atMs: 0, key, client: ana, fence: 5, ttlMs: 30_000 } as const;
const believed = {
  what: 'believed',
  atMs: 10,
  key,
  client: ana,
  fence: 5,
  untilMs: 29_000,
} as const;

/** The rules that a trace breaks, in their order. */
function broken(...events: ModelEvent[]): string[] {
  const model = new LeaseModel(SETTING);
  return events.flatMap((event) => model.take(event)?.rule ?? []);
}

describe('the rules of the model', () => {
  it('B-28 allow a lease that is granted, renewed, released and granted to the next', () => {
    const trace: ModelEvent[] = [
      granted,
      believed,
      { what: 'renewed', atMs: 10_000, key, client: ana, ttlMs: 30_000 },
      { ...believed, atMs: 10_005, untilMs: 39_000 },
      { what: 'acted', atMs: 38_000, key, client: ana, fence: 5 },
      { what: 'released', atMs: 38_500, key, client: ana, fence: 5 },
      { ...granted, atMs: 38_600, client: ben, fence: 6 },
      { ...believed, atMs: 38_700, client: ben, fence: 6, untilMs: 67_000 },
    ];
    expect(broken(...trace)).toEqual([]);
  });

  it.each<[string, ModelEvent[]]>([
    ['grant', [granted, { ...granted, atMs: 29_000, client: ben, fence: 6 }]],
    ['fence', [granted, { ...granted, atMs: 31_000, client: ben, fence: 4 }]],
    [
      'quarantine',
      [granted, { what: 'lost', atMs: 1_000 }, { ...granted, atMs: 30_000, client: ben, fence: 6 }],
    ],
    [
      'claim',
      [
        granted,
        { what: 'lost', atMs: 1_000 },
        { ...granted, atMs: 2_000, client: ben, fence: 6, isClaim: true },
      ],
    ],
    ['renew', [granted, { what: 'renewed', atMs: 31_000, key, client: ana, ttlMs: 30_000 }]],
    ['release', [granted, { what: 'released', atMs: 10, key, client: ana, fence: 4 }]],
    [
      'revoke',
      [granted, { what: 'revoked', atMs: 10, key, client: ben, newFence: 6, isForced: false }],
    ],
    ['believe', [granted, { ...believed, untilMs: 30_000 }]],
    ['act', [granted, believed, { what: 'acted', atMs: 29_500, key, client: ana, fence: 5 }]],
    ['commit', [granted, { what: 'committed', atMs: 10, key, client: ben, fence: 4 }]],
  ])('B-28 name the rule that is broken: %s', (rule, trace) => {
    expect(broken(...trace)).toEqual([rule]);
  });

  it('B-28 a keepalive that a loss has ended is renewed by no store', () => {
    const attached = {
      what: 'renewed',
      key,
      client: ana,
      ttlMs: 30_000,
      attachedTo: 'one',
    } as const;
    const kept = { what: 'kept', keepalive: 'one', ttlMs: 30_000 } as const;
    const before: ModelEvent[] = [granted, { ...attached, atMs: 10 }, { ...kept, atMs: 20_000 }];
    expect(broken(...before)).toEqual([]);
    expect(broken(...before, { ...kept, atMs: 51_000 })).toEqual(['keepalive']);
    expect(broken(...before, { what: 'lost', atMs: 21_000 }, { ...kept, atMs: 22_000 })).toEqual([
      'keepalive',
    ]);
  });

  it('B-28 asking does not change the state', () => {
    const model = new LeaseModel(SETTING);
    const late = { ...granted, atMs: 31_000, client: ben, fence: 6 };
    expect(model.allows(granted)).toBeNull();
    expect(model.allows(late)).toBeNull();
    model.take(granted);
    expect(model.allows({ ...late, atMs: 1_000 })?.text).toContain('ben was granted what ana had');
  });
});

describe('a history of live faults', () => {
  const entry = (atMs: number, who: string, what: string, facts: object = {}) => ({
    atMs,
    who,
    what,
    target: 't',
    ...facts,
  });
  const first = [
    entry(100, ana, 'lease.acquired', { fence: 1, deadlineMs: 2_900 }),
    entry(1_000, ana, 'lease.extended', { fence: 1, deadlineMs: 3_800 }),
    entry(1_100, ana, 'poll.began', { fence: 1, poll: 1 }),
  ];

  it('B-28 allows a key that is granted when its holder has stopped, and not before', () => {
    const stopped = [
      entry(1_200, ana, 'lease.releasing', { fence: 1 }),
      entry(1_300, ana, 'poll.ended', { fence: 1, poll: 1 }),
    ];
    const next = { fence: 2, deadlineMs: 4_200 };
    const after = entry(1_400, ben, 'lease.acquired', next);
    expect(modelRefusals([...first, ...stopped, after])).toEqual([]);
    const early = entry(1_250, ben, 'lease.acquired', next);
    const rules = modelRefusals([...first, ...stopped.slice(0, 1), early]).map(({ rule }) => rule);
    expect(rules).toEqual(['grant', 'believe']);
  });

  it('B-28 refuses a write after the deadline, and a grant in a quarantine', () => {
    const late = entry(3_900, ana, 'poll.acted', { fence: 1, poll: 1 });
    expect(modelRefusals([...first, late]).map(({ rule }) => rule)).toEqual(['act']);
    const lost = entry(3_000, ben, 'store.forgot');
    const early = entry(5_900, ben, 'lease.acquired', { fence: 2, deadlineMs: 8_700 });
    const rules = modelRefusals([...first, lost, early]).map(({ rule }) => rule);
    expect(rules).toEqual(['quarantine']);
  });
});

describe('what spin has printed', () => {
  // ana is granted the key for a tick, and believes in it for two; ben is granted it after one.
  const output = [[18, 0, 0], [10, 0, 0, 2], [20], [18, 1, 0], [10, 1, 0, 1]]
    .map(([what = 0, client = 0, k = 0, more = 0]) => `STEP ${what} ${client} ${k} ${more}`)
    .join('\n');

  it('becomes a story that says who did what at which time', () => {
    expect(tell(stepsOf(output))).toEqual([
      '  0 s  the store grants key 1 to ana for 15 s',
      '  0 s  ana hears of it, and works under key 1 until 30 s',
      ' 15 s  the store grants key 1 to ben for 15 s',
      ' 15 s  ben hears of it, and works under key 1 until 30 s',
      '       ✗ ana and ben both work under key 1',
    ]);
  });

  it('B-28 becomes a trace that the rules judge', () => {
    const model = new LeaseModel({ boundMs: 30_000, drift: 0, slackMs: 0 });
    const found = traceOf(stepsOf(output)).flatMap((event) => model.take(event)?.rule ?? []);
    expect(found[0]).toBe('believe');
  });
});
