import assert from 'node:assert/strict';
import { SIZE_LIMITS, type SizedKind } from '../../src/store/port/limits.ts';
import { Gateway } from './gateway.ts';
import { CALL, type Check } from './kit.ts';
import { begun } from './orchestrator.ts';

/** JSON of a text takes two bytes more than the text. */
const QUOTES = 2;

/** Text that is as large as JSON as a value of this kind may be, or by so much larger. */
const text = (kind: SizedKind, more = 0) => 'x'.repeat(SIZE_LIMITS[kind] - QUOTES + more);

/** The bounds of what is kept: the same in every store. */
export function bounding(check: Check): void {
  const refused = (kind: SizedKind, call: () => Promise<unknown>) =>
    assert.rejects(call, { code: 'VALUE_TOO_LARGE', kind, mostBytes: SIZE_LIMITS[kind] });

  check('B-03 keeps a record as large as it may be, and refuses a larger one', async (kit) => {
    const largest = text('record');
    assert.equal((await kit.put('a', largest)).kind, 'written');
    const found = await kit.get('a');
    assert(found.kind === 'found' && found.value === largest);
    await refused('record', () => kit.put('a', text('record', 1)));
    await refused('record', () => kit.put('a', '€'.repeat(SIZE_LIMITS.record / 2)));
    const after = await kit.get('a');
    assert(after.kind === 'found' && after.revision === found.revision);
  });
  check('B-03 writes nothing of a call with a record that is too large', async (kit) => {
    const writes = [
      { id: 'small', value: 1 },
      { id: 'large', value: text('record', 1) },
    ];
    await refused('record', () => kit.store.records.put(kit.collection, writes, CALL));
    assert.equal((await kit.get('small')).kind, 'absent');
    assert.deepEqual((await kit.changes(0)).written, []);
  });
  check('B-03 refuses a heartbeat that is too large', async (kit) => {
    const attributes = { text: text('heartbeat') };
    const beat = { ...CALL, ttlMs: 60_000 };
    await refused('heartbeat', () =>
      kit.store.members.beat({ id: kit.member('a'), attributes }, beat),
    );
    assert.deepEqual(await kit.members(), []);
  });
  check('B-03 refuses an entry of the log that is too large, and those beside it', async (kit) => {
    const values = ['small', text('log entry', 1)];
    await refused('log entry', () => kit.store.log.append(values, CALL));
  });
  check('B-03 refuses an entry of a stream that is too large', async (kit) => {
    const entries = [{ lane: 'a', priority: 0, value: text('stream entry', 1) }];
    await refused('stream entry', () =>
      kit.store.streams.append(kit.topic('stream'), entries, CALL),
    );
  });
  check('B-03 refuses a state, an action and a result that are too large', async (kit) => {
    const { workflows } = kit.store;
    const { id, leaseId, epoch } = await begun(kit);
    const step = { leaseId, epoch, read: [] };
    await refused('workflow state', () =>
      workflows.update(id, { ...step, state: text('workflow state', 1) }, CALL),
    );
    const target = kit.topic('target');
    const action = { id: 'a', target, priority: 0, body: text('action', QUOTES + 1) };
    await refused('action', () => workflows.emit(id, { ...step, actions: [action] }, CALL));
    const value = text('result', 1);
    const settlement = { workflow: id, fence: 1, outcome: 'succeeded', value } as const;
    await refused('result', () => workflows.settle(target, [settlement], CALL));
  });
  check('B-03 refuses a session that is too large', async (kit) => {
    const gateway = new Gateway(kit);
    await refused('session', () => gateway.start('a', { body: text('session', QUOTES + 1) }));
  });
}
