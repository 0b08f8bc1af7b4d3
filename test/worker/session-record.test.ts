import { describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import type {
  AdvanceReply,
  SessionState,
  StoredSession,
} from '../../src/store/port/intent-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { SessionRecord } from '../../src/worker/session-record.ts';

const ME = 'w';
const BODY = JSON.stringify({
  ...{ kind: 'live', type: 'stream.start', target: 'x', profile: 'hd', bucket: '0' },
});

function stored(revision: number, state: SessionState, worker = ME): StoredSession {
  const status = JSON.stringify({ reason: null, outcome: null, worker, slot: null });
  const times = { createdAtMs: 0, changedAtMs: 0, kind: 'live', label: 'x' };
  return { id: 's', tenant: 't', state, revision, body: BODY, status, clients: 1, ...times };
}

/** The record of a session at revision 5, with a store that gives the reply of the test. */
function scene(reply: AdvanceReply = { kind: 'absent' }) {
  const asked: number[] = [];
  const advance = async (_: string, { ifRevision }: { ifRevision: number }) => {
    asked.push(ifRevision);
    return reply;
  };
  const store = { intents: { advance } } as unknown as Store;
  const rt = { store, events: new Emitter(), instanceId: ME };
  return { asked, record: new SessionRecord(rt, stored(5, 'RUNNING')) };
}

describe('SessionRecord', () => {
  it('I-09 ignores an older revision the first time, because answers may arrive out of order', () => {
    const { record } = scene();
    record.refresh(stored(4, 'STOPPING'));
    expect(record.session.state).toBe('RUNNING');
    record.refresh(stored(6, 'RUNNING'));
    record.refresh(stored(5, 'STOPPING'));
    expect(record.session.revision).toBe(6);
  });

  it('I-13 accepts an older revision the second time, because the store has lost the last changes', () => {
    const { record } = scene();
    record.refresh(stored(3, 'STOPPING'));
    record.refresh(stored(3, 'STOPPING'));
    expect(record.session).toMatchObject({ state: 'STOPPING', revision: 3 });
  });

  it('I-13 I-09 accepts an older revision as the answer to a write, and writes next from there', async () => {
    const { record, asked } = scene({ kind: 'conflict', session: stored(2, 'STARTING') });
    expect(await record.write('STOPPING', {}, () => true)).toBe(false);
    expect(record.session).toMatchObject({ state: 'STARTING', revision: 2 });
    await record.write('STOPPING', {}, () => true);
    expect(asked).toEqual([5, 2]);
  });

  it('is not open once the session is removed, until it is read again', async () => {
    const { record, asked } = scene();
    expect(await record.write('STOPPING', {}, () => true)).toBe(false);
    expect([record.isOpen, record.isMine]).toEqual([false, false]);
    expect(await record.write('STOPPING', {}, () => true)).toBe(false);
    expect(asked).toEqual([5]);
    record.refresh(stored(5, 'RUNNING'));
    expect(record.isMine).toBe(true);
  });
});
