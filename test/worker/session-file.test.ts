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
  const times = { createdAtMs: 0, changedAtMs: 0 };
  return { id: 's', tenant: 't', state, revision, body: BODY, status, clients: 1, ...times };
}

/** The file of a session at revision 5, and what it asks of its store, which says what the test has it say. */
function scene(reply: AdvanceReply = { kind: 'absent' }) {
  const asked: number[] = [];
  const advance = async (_: string, { ifRevision }: { ifRevision: number }) => {
    asked.push(ifRevision);
    return reply;
  };
  const store = { intents: { advance } } as unknown as Store;
  const rt = { store, events: new Emitter(), instanceId: ME };
  return { asked, file: new SessionRecord(rt, stored(5, 'RUNNING')) };
}

describe('what a worker knows of a session', () => {
  it('I-09 an answer that is older than another is not believed at once: they come in any order', () => {
    const { file } = scene();
    file.refresh(stored(4, 'STOPPING'));
    expect(file.session.state).toBe('RUNNING');
    file.refresh(stored(6, 'RUNNING'));
    file.refresh(stored(5, 'STOPPING'));
    expect(file.session.revision).toBe(6);
  });

  it('I-13 is what the store says again, also if that is older: it has lost the last changes', () => {
    const { file } = scene();
    file.refresh(stored(3, 'STOPPING'));
    file.refresh(stored(3, 'STOPPING'));
    expect(file.session).toMatchObject({ state: 'STOPPING', revision: 3 });
  });

  it('I-13 I-09 is what it answers to a change, also if that is older: the next one is made from there', async () => {
    const { file, asked } = scene({ kind: 'conflict', session: stored(2, 'STARTING') });
    expect(await file.write('STOPPING', {}, () => true)).toBe(false);
    expect(file.session).toMatchObject({ state: 'STARTING', revision: 2 });
    await file.write('STOPPING', {}, () => true);
    expect(asked).toEqual([5, 2]);
  });

  it('is nothing once it is gone, until it is seen again', async () => {
    const { file, asked } = scene();
    expect(await file.write('STOPPING', {}, () => true)).toBe(false);
    expect([file.isOpen, file.isMine]).toEqual([false, false]);
    expect(await file.write('STOPPING', {}, () => true)).toBe(false);
    expect(asked).toEqual([5]);
    file.refresh(stored(5, 'RUNNING'));
    expect(file.isMine).toBe(true);
  });
});
