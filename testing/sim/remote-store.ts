/**
 * A memory store on a machine of its own, as a process reaches it: requests and answers take their
 * time, are held up while the path is cut, and arrive late then, in any order. A request is carried
 * out at most once. Its sender stops waiting when its time is over, whatever becomes of it.
 */
import { OutcomeUnknownError } from '../../src/core/errors.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import type { SignalStore } from '../../src/store/port/signal-store.ts';
import type { Call, Store } from '../../src/store/port/store.ts';
import type { SimProcess } from './host.ts';
import type { NetworkParts } from './network.ts';
import { PHASE } from './timeline.ts';

/** What is held up tries to get through again after this, at most. */
const RESEND_MOST_MS = 3_000;
/** How long a request without a timeout of its own may take. */
const SIGNAL_TIMEOUT_MS = 2_000;

export interface RemoteParts {
  readonly network: Pick<NetworkParts, 'timeline' | 'process' | 'path' | 'counters'>;
  /** The machine that has the store: it may be frozen. */
  readonly server: SimProcess;
  readonly store: Store;
  /** Told of each call of a lease verb when it is carried out, with its reply. */
  onCarriedOut(verb: string, args: readonly unknown[], reply: unknown, by: SimProcess): void;
}

type LeaseVerb = Exclude<keyof LeaseStore, 'maxTtls' | 'lane'>;

const LEASE_VERBS: readonly LeaseVerb[] = [
  'acquire',
  'renew',
  'keepAlive',
  'reassert',
  'release',
  'transfer',
  'revoke',
  'read',
  'list',
  'wakeNext',
];

/** The store for one process, and what ends its subscriptions when the process is gone. */
export function remoteStore(parts: RemoteParts): { store: Store; abandon(): void } {
  const { store, onCarriedOut } = parts;
  const { process } = parts.network;
  const target: object = store.leases;
  const verbs = LEASE_VERBS.map((verb) => {
    const call = (...args: unknown[]) => {
      const { timeoutMs } = args.at(-1) as Call;
      process.reach(`lease/${verb}`);
      return request(parts, verb, timeoutMs, async () => {
        const run = Reflect.get(target, verb) as (...all: unknown[]) => Promise<unknown>;
        const reply = await Reflect.apply(run, target, args);
        onCarriedOut(verb, args, reply, process);
        return reply;
      });
    };
    return [verb, call] as const;
  });
  const subscriptions = new Set<() => void>();
  const leases = Object.fromEntries(verbs) as unknown as LeaseStore;
  return {
    store: {
      ...store,
      leases,
      signals: remoteSignals(parts, subscriptions),
      members: remotePart(parts, 'member', store.members),
      records: remotePart(parts, 'record', store.records),
      log: remotePart(parts, 'log', store.log),
      streams: remotePart(parts, 'stream', store.streams),
      workflows: remotePart(parts, 'workflow', store.workflows),
      intents: remotePart(parts, 'intent', store.intents),
      runs: remotePart(parts, 'run', store.runs),
    },
    abandon: () => {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}

/** A part of the store each of whose verbs has the `Call` as its last argument. */
function remotePart<P extends object>(parts: RemoteParts, noun: string, part: P): P {
  return new Proxy(part, {
    get: (target, verb) => {
      const run: unknown = Reflect.get(target, verb);
      if (typeof run !== 'function' || typeof verb !== 'string') return run;
      return (...args: unknown[]) => {
        const { timeoutMs } = args.at(-1) as Call;
        parts.network.process.reach(`${noun}/${verb}`);
        return request(parts, verb, timeoutMs, async () => Reflect.apply(run, target, args));
      };
    },
  });
}

function request<T>(
  parts: RemoteParts,
  operation: string,
  timeoutMs: number,
  carryOut: () => Promise<T>,
): Promise<T> {
  const why = 'no answer';
  const facts = { store: parts.store.name, operation, afterMs: timeoutMs, why };
  return remoteCall(
    parts,
    { timeoutMs, unanswered: () => new OutcomeUnknownError(facts) },
    carryOut,
  );
}

/** Sends a request, and resolves with its answer if that comes in time. */
export function remoteCall<T>(
  parts: Pick<RemoteParts, 'network' | 'server'>,
  { timeoutMs, unanswered }: { readonly timeoutMs: number; unanswered(): Error },
  carryOut: () => Promise<T>,
): Promise<T> {
  const { timeline, process, path, counters } = parts.network;
  return new Promise((resolve, reject) => {
    // It was killed where it was about to send this.
    if (process.isDead) return;
    const sentMs = process.trueMs;
    let isOver = false;
    const timer = process.after(timeoutMs, () => {
      isOver = true;
      reject(unanswered());
    });
    const answer = (settle: () => void) =>
      carry(
        parts,
        timeline.nowMs,
        () => path.isCutBack,
        () =>
          process.deliver(() => {
            if (isOver) return counters.add('answer lost');
            timer.cancel();
            settle();
          }),
      );
    carry(
      parts,
      sentMs,
      () => path.isCutOut,
      () =>
        parts.server.deliver(() => {
          if (timeline.nowMs > sentMs + timeoutMs) counters.add('carried out late');
          carryOut().then(
            (reply) => answer(() => resolve(reply)),
            (error) => answer(() => reject(error)),
          );
        }),
    );
  });
}

/** Brings a message to its other end, after any cut. */
function carry(
  parts: Pick<RemoteParts, 'network'>,
  fromMs: number,
  isCut: () => boolean,
  arrive: () => void,
): void {
  const { timeline, path } = parts.network;
  const attempt = () => {
    if (!isCut()) return arrive();
    timeline.at(timeline.nowMs + path.chance() * RESEND_MOST_MS, attempt, PHASE.input);
  };
  timeline.at(fromMs + path.delayMs(), attempt, PHASE.input);
}

function remoteSignals(parts: RemoteParts, subscriptions: Set<() => void>): SignalStore {
  const { network, store } = parts;
  const { timeline, path, process } = network;
  return {
    publish: (topic, message) =>
      request(parts, 'publish', SIGNAL_TIMEOUT_MS, () => store.signals.publish(topic, message)),
    subscribe: (topic, subscriber) =>
      request(parts, 'subscribe', SIGNAL_TIMEOUT_MS, async () => {
        // Hints may be lost; a process that is cut off gets none.
        const onMessage = (message: string) => {
          if (!path.isCutBack)
            carry(
              parts,
              timeline.nowMs,
              () => false,
              () => process.deliver(() => subscriber.onMessage(message)),
            );
        };
        const unsubscribe = await store.signals.subscribe(topic, { onMessage, onGap: () => {} });
        subscriptions.add(unsubscribe);
        return unsubscribe;
      }),
  };
}
