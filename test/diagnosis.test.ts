import { describe, expect, it } from 'vitest';
import { diagnose } from '../src/diagnosis.ts';
import type { Finding } from '../src/store/port/examination.ts';
import { serverWorld } from './support/server-world.ts';

const BEAT = { ttlMs: 60_000, timeoutMs: 1_000 };

async function patient(findings: readonly Finding[] = []) {
  const { holdfast, clock, store } = await serverWorld({ history: 'on' });
  holdfast.examine = async () => ({ store: 'a store', findings });
  const vitals = {
    ...{ ttlMs: 10_000, renewEveryMs: 3_000, renewP50Ms: 2, renewP99Ms: 40, loopDelayMs: 5 },
  };
  await store.members.beat({ id: 'api-1', attributes: { weight: 1, vitals } }, BEAT);
  return { holdfast, clock, store };
}

describe('a diagnosis', () => {
  it('has how much room each member has to renew', async () => {
    const { holdfast, clock } = await patient();
    const { members, store } = await diagnose(holdfast, clock, { tryOut: false });
    expect(store).toBe('a store');
    const known = { renewP99Ms: 40, ttlMs: 10_000, loopDelayMs: 5 };
    expect(members).toEqual([{ id: 'api-1', marginMs: 9_960, ...known }]);
  });

  it('has the clock that is off the most, and how exactly that is known', async () => {
    const about = { level: 'ok', subject: 'clock', fact: 'Its clock.' } as const;
    const offsets = [3, -70, 12].map((offsetMs) => ({ offsetMs, uncertaintyMs: 0.4 }));
    const { holdfast, clock } = await patient(offsets.map((clock) => ({ ...about, clock })));
    const diagnosis = await diagnose(holdfast, clock, { tryOut: false });
    expect(diagnosis.clock).toEqual({ offsetMs: -70, uncertaintyMs: 0.4 });
    expect(diagnosis.findings[0]).toEqual(about);
  });

  it('has no offset where store and instance have the same clock', async () => {
    const fact = "The host's monotonic clock.";
    const { holdfast, clock } = await patient([{ level: 'ok', subject: 'clock', fact }]);
    expect((await diagnose(holdfast, clock, { tryOut: false })).clock).toBeNull();
  });

  it('tries the store out only where it is asked to', async () => {
    const { holdfast, clock } = await patient();
    const rights = ({ findings }: Awaited<ReturnType<typeof diagnose>>) =>
      findings.filter(({ subject }) => subject === 'rights');
    expect(rights(await diagnose(holdfast, clock, { tryOut: false }))).toEqual([]);
    const tried = diagnose(holdfast, clock, { tryOut: true });
    await clock.advance(100);
    expect(rights(await tried)).toMatchObject([{ level: 'ok' }]);
  });

  it('knows from the log for how long a member has been draining', async () => {
    const { holdfast, clock, store } = await patient();
    await store.members.beat({ id: 'api-1', attributes: { draining: true } }, BEAT);
    const event = { instance: 'api-1', event: 'member.draining', member: 'api-1' };
    await store.log.append([{ at: clock.wallMs() - 60_000, ...event }], BEAT);
    const draining = async () =>
      (await diagnose(holdfast, clock, { tryOut: false })).findings.filter(
        ({ subject }) => subject === 'draining',
      );
    expect(await draining()).toEqual([]);
    await clock.advance(600_000);
    await store.members.beat({ id: 'api-1', attributes: { draining: true } }, BEAT);
    expect(await draining()).toMatchObject([{ level: 'warn' }]);
  });
});
