import type { Clock } from '../../src/core/clock.ts';
import { OutcomeUnknownError, StoreUnreachableError } from '../../src/core/errors.ts';
import type { IntentStore } from '../../src/store/port/intent-store.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import type { LogStore } from '../../src/store/port/log-store.ts';
import type { MemberStore } from '../../src/store/port/member-store.ts';
import type { RecordStore } from '../../src/store/port/record-store.ts';
import type { RunStore } from '../../src/store/port/run-store.ts';
import type { Call, Store } from '../../src/store/port/store.ts';
import type { StreamStore } from '../../src/store/port/stream-store.ts';
import type { WorkflowStore } from '../../src/store/port/workflow-store.ts';
import { FaultySignals } from './faulty-signals.ts';

/**
 * What goes wrong between a client and its store. Change it at any time; it applies to calls from
 * then on.
 */
export interface StoreFaults {
  /** Calls are carried out but never answered: the caller times out. */
  loseReplies: boolean;
  /**
   * Calls never arrive and are never answered: a frozen store, or a half-open socket. Signals do
   * not arrive, either.
   */
  hang: boolean;
  /** Calls are refused at once: nobody listens. Signals do not arrive, either. */
  refuse: boolean;
}

/** Runs a call as the faults of the moment have it. */
export type Through = <T>(operation: string, call: Call, send: () => Promise<T>) => Promise<T>;

/**
 * A store behind a bad connection: for tests that need a store to fail at a chosen moment, on a
 * clock of their own.
 */
export function faultyStore(store: Store, clock: Clock): { store: Store; faults: StoreFaults } {
  const faults = new Faults();
  const through: Through = async (operation, { timeoutMs }, send) => {
    const where = { store: store.name, operation };
    if (faults.refuse) throw new StoreUnreachableError({ ...where, why: 'nobody listens' });
    const lost = faults.loseReplies || faults.hang;
    const reply = faults.hang ? null : send();
    if (!lost && reply !== null) return reply;
    // Nobody hears how it ended, not even badly.
    reply?.catch(() => {});
    await clock.sleep(timeoutMs);
    throw new OutcomeUnknownError({ ...where, afterMs: timeoutMs, why: 'no answer' });
  };
  const signals = new FaultySignals({ signals: store.signals, clock, through, faults });
  faults.onOver = () => signals.tellGap();
  const faulty: Store = {
    name: store.name,
    ...(store.identity !== undefined && { identity: store.identity }),
    leases: faultyLeases(store.leases, through),
    members: faultyMembers(store.members, through),
    records: faultyRecords(store.records, through),
    log: faultyLog(store.log, through),
    streams: faultyStreams(store.streams, through),
    workflows: faultyWorkflows(store.workflows, through),
    intents: faultyIntents(store.intents, through),
    runs: faultyRuns(store.runs, through),
    signals,
    examine: () => store.examine(),
    close: () => store.close(),
  };
  return { store: faulty, faults };
}

class Faults implements StoreFaults {
  loseReplies = false;
  onOver = () => {};
  #hang = false;
  #refuse = false;

  get hang(): boolean {
    return this.#hang;
  }

  set hang(hang: boolean) {
    const wasCutOff = this.isCutOff;
    this.#hang = hang;
    if (wasCutOff && !this.isCutOff) this.onOver();
  }

  get refuse(): boolean {
    return this.#refuse;
  }

  set refuse(refuse: boolean) {
    const wasCutOff = this.isCutOff;
    this.#refuse = refuse;
    if (wasCutOff && !this.isCutOff) this.onOver();
  }

  /** Nothing arrives, in either direction. */
  get isCutOff(): boolean {
    return this.#hang || this.#refuse;
  }
}

function faultyLeases(leases: LeaseStore, through: Through): LeaseStore {
  const keepAlive: LeaseStore['keepAlive'] = leases.keepAlive?.bind(leases);
  return {
    ...(keepAlive !== undefined && {
      keepAlive: (id, call) => through('keep alive', call, () => keepAlive(id, call)),
    }),
    acquire: (requests, call) => through('acquire', call, () => leases.acquire(requests, call)),
    renew: (tenures, call) => through('renew', call, () => leases.renew(tenures, call)),
    reassert: (tenures, call) => through('reassert', call, () => leases.reassert(tenures, call)),
    release: (tenures, call) => through('release', call, () => leases.release(tenures, call)),
    transfer: (handovers, call) =>
      through('transfer', call, () => leases.transfer(handovers, call)),
    revoke: (key, call) => through('revoke', call, () => leases.revoke(key, call)),
    read: (keys, call) => through('read', call, () => leases.read(keys, call)),
    list: (prefix, call) => through('list', call, () => leases.list(prefix, call)),
    wakeNext: (keys, call) => through('wake', call, () => leases.wakeNext(keys, call)),
  };
}

function faultyMembers(members: MemberStore, through: Through): MemberStore {
  return {
    beat: (member, call) => through('beat', call, () => members.beat(member, call)),
    leave: (id, call) => through('leave', call, () => members.leave(id, call)),
    list: (call) => through('list members', call, () => members.list(call)),
  };
}

function faultyRecords(records: RecordStore, through: Through): RecordStore {
  return {
    get: (collection, ids, call) => through('get', call, () => records.get(collection, ids, call)),
    put: (collection, writes, call) =>
      through('put', call, () => records.put(collection, writes, call)),
    remove: (collection, removals, call) =>
      through('remove', call, () => records.remove(collection, removals, call)),
    changes: (collection, call) =>
      through('changes', call, () => records.changes(collection, call)),
    discover: (collection, call) =>
      through('discover', call, () => records.discover(collection, call)),
  };
}

function faultyLog(log: LogStore, through: Through): LogStore {
  return {
    append: (values, call) => through('append', call, () => log.append(values, call)),
    read: (call) => through('read log', call, () => log.read(call)),
    recall: (call) => through('recall', call, () => log.recall(call)),
    trim: (call) => through('trim', call, () => log.trim(call)),
  };
}

function faultyStreams(streams: StreamStore, through: Through): StreamStore {
  return {
    append: (stream, entries, call) =>
      through('append to stream', call, () => streams.append(stream, entries, call)),
    consume: (stream, call) => through('consume', call, () => streams.consume(stream, call)),
    extend: (stream, held, call) =>
      through('extend', call, () => streams.extend(stream, held, call)),
    ack: (stream, held, call) => through('ack', call, () => streams.ack(stream, held, call)),
    retry: (stream, held, call) => through('retry', call, () => streams.retry(stream, held, call)),
    bury: (stream, held, call) => through('bury', call, () => streams.bury(stream, held, call)),
    dead: (stream, call) => through('read the dead', call, () => streams.dead(stream, call)),
    drop: (stream, ids, call) => through('drop', call, () => streams.drop(stream, ids, call)),
    names: (call) => through('name streams', call, () => streams.names(call)),
  };
}

function faultyWorkflows(workflows: WorkflowStore, through: Through): WorkflowStore {
  return {
    begin: (id, request, call) => through('begin', call, () => workflows.begin(id, request, call)),
    emit: (id, step, call) => through('emit', call, () => workflows.emit(id, step, call)),
    update: (id, step, call) => through('update', call, () => workflows.update(id, step, call)),
    markRead: (id, step, call) =>
      through('mark read', call, () => workflows.markRead(id, step, call)),
    unpark: (id, step, call) => through('unpark', call, () => workflows.unpark(id, step, call)),
    handoff: (id, step, call) => through('hand off', call, () => workflows.handoff(id, step, call)),
    revoke: (leaseId, call) =>
      through('revoke tenure', call, () => workflows.revoke(leaseId, call)),
    take: (target, call) => through('take', call, () => workflows.take(target, call)),
    reserve: (target, action, call) =>
      through('reserve', call, () => workflows.reserve(target, action, call)),
    extend: (target, held, call) =>
      through('extend', call, () => workflows.extend(target, held, call)),
    settle: (target, settlements, call) =>
      through('settle', call, () => workflows.settle(target, settlements, call)),
    revive: (target, deadId, call) =>
      through('revive', call, () => workflows.revive(target, deadId, call)),
    read: (ids, call) => through('read workflows', call, () => workflows.read(ids, call)),
    results: (id, call) => through('read results', call, () => workflows.results(id, call)),
    resultOf: (id, actionId, call) =>
      through('read result', call, () => workflows.resultOf(id, actionId, call)),
    history: (id, call) => through('read history', call, () => workflows.history(id, call)),
    list: (call) => through('list workflows', call, () => workflows.list(call)),
    remove: (id, call) => through('remove workflow', call, () => workflows.remove(id, call)),
  };
}

function faultyRuns(runs: RunStore, through: Through): RunStore {
  return {
    start: (id, request, call) => through('start run', call, () => runs.start(id, request, call)),
    due: (functions, call) => through('give out runs', call, () => runs.due(functions, call)),
    load: (id, call) => through('load run', call, () => runs.load(id, call)),
    read: (ids, call) => through('read runs', call, () => runs.read(ids, call)),
    keep: (id, step, call) => through('keep step', call, () => runs.keep(id, step, call)),
    signal: (id, signal, call) => through('signal', call, () => runs.signal(id, signal, call)),
    pause: (id, step, call) => through('pause run', call, () => runs.pause(id, step, call)),
    restart: (id, call) => through('restart run', call, () => runs.restart(id, call)),
  };
}

function faultyIntents(intents: IntentStore, through: Through): IntentStore {
  return {
    start: (request, call) => through('start', call, () => intents.start(request, call)),
    stop: (request, call) => through('stop', call, () => intents.stop(request, call)),
    advance: (id, change, call) =>
      through('advance', call, () => intents.advance(id, change, call)),
    republish: (ids, call) => through('republish', call, () => intents.republish(ids, call)),
    read: (ids, call) => through('read sessions', call, () => intents.read(ids, call)),
    list: (call) => through('list sessions', call, () => intents.list(call)),
    prune: (call) => through('prune', call, () => intents.prune(call)),
  };
}
