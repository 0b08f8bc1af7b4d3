import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import { Counters } from '../../../testing/sim/counters.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';
import { WorkAudit } from '../../../testing/sim/work-audit.ts';

const LEAST_MS = 1_000;

function world() {
  const timeline = new Timeline();
  const process = new SimProcess(new SimHost(timeline), 'p', seededRandom(1));
  const found: string[] = [];
  const store = { record: '{"periodAtMs":1,"endedAtMs":5}' };
  const audit = new WorkAudit({
    timeline,
    counters: new Counters(),
    leastDistanceMs: LEAST_MS,
    peek: () => store.record,
    report: (invariant) => void found.push(invariant),
  });
  return { timeline, process, found, store, audit };
}

describe('the auditor of what leases are for', () => {
  it('B-09 reports a second run in one period, and none in the next', async () => {
    const { audit, timeline, process, found, store } = world();
    audit.began('once:k', process, 'skip');
    await timeline.run(LEAST_MS);
    store.record = '{"periodAtMs":2}';
    audit.began('once:k', process, 'skip');
    expect(found).toEqual([]);
    await timeline.run(LEAST_MS + 10);
    store.record = '{"periodAtMs":3}';
    audit.began('once:k', process, 'skip');
    expect(found).toEqual(['periods']);
  });

  it('B-09 with retry, a run may start over until its end is on record', () => {
    const { audit, process, found, store } = world();
    audit.began('once:k', process, 'retry');
    audit.began('once:k', process, 'retry');
    store.record = '{"periodAtMs":1,"endedAtMs":null}';
    audit.ran('once:k');
    audit.began('once:k', process, 'retry');
    expect(found).toEqual([]);
    store.record = '{"periodAtMs":1,"endedAtMs":7}';
    audit.ran('once:k');
    audit.began('once:k', process, 'retry');
    expect(found).toEqual(['periods']);
    store.record = '{"periodAtMs":2}';
    audit.began('once:k', process, 'retry');
    expect(found).toEqual(['periods']);
  });

  it('B-09 promises no period after a loss of data', () => {
    const { audit, process, found } = world();
    audit.began('once:k', process, 'skip');
    audit.excuse();
    audit.began('once:k', process, 'skip');
    expect(found).toEqual([]);
  });

  it('B-05 reports a lease that is believed in after its maxHold', async () => {
    const { audit, timeline, process, found } = world();
    audit.endsBy('k', process, { maxHoldMs: 100, isBelieved: () => false });
    audit.endsBy('k', process, { maxHoldMs: 500, isBelieved: () => timeline.nowMs < 400 });
    await timeline.run(1_000);
    expect(found).toEqual([]);
    audit.endsBy('k', process, { maxHoldMs: 100, isBelieved: () => true });
    await timeline.run(2_000);
    expect(found).toEqual(['holds']);
  });
});
