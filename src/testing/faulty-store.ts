import type { Clock } from '../base/clock.ts';
import { OutcomeUnknownError, StoreUnreachableError } from '../base/errors.ts';
import type {
  Call,
  LeaseStore,
  LogStore,
  MemberStore,
  RecordStore,
  Store,
} from '../store/store.ts';
import { FaultySignals } from './faulty-signals.ts';

/** What goes wrong between a client and its store. Change it at any time; it applies to calls from then on. */
export interface StoreFaults {
  /** Calls are carried out but never answered: the caller's time runs out. */
  loseReplies: boolean;
  /** Calls never arrive and are never answered: a frozen store, or a half-open socket. Signals do not arrive, either. */
  hang: boolean;
  /** Calls are refused at once: nobody listens. Signals do not arrive, either. */
  refuse: boolean;
}

/** Runs a call as the faults of the moment have it. */
export type Through = <T>(operation: string, call: Call, send: () => Promise<T>) => Promise<T>;

/** A store behind a bad connection: for tests that need a store to fail at a chosen moment, on a clock of their own. */
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
    leases: faultyLeases(store.leases, through),
    members: faultyMembers(store.members, through),
    records: faultyRecords(store.records, through),
    log: faultyLog(store.log, through),
    streams: undefined as never,
    workflows: undefined as never,
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
  return {
    acquire: (requests, call) => through('acquire', call, () => leases.acquire(requests, call)),
    renew: (tenures, call) => through('renew', call, () => leases.renew(tenures, call)),
    reassert: (tenures, call) => through('reassert', call, () => leases.reassert(tenures, call)),
    release: (tenures, call) => through('release', call, () => leases.release(tenures, call)),
    transfer: (handovers, call) =>
      through('transfer', call, () => leases.transfer(handovers, call)),
    revoke: (key, call) => through('revoke', call, () => leases.revoke(key, call)),
    read: (keys, call) => through('read', call, () => leases.read(keys, call)),
    list: (prefix, call) => through('list', call, () => leases.list(prefix, call)),
    forgo: (key, inbox, call) => through('forgo', call, () => leases.forgo(key, inbox, call)),
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
  };
}
