import { StoreLacksWorkError } from '../core/errors.ts';
import type { CoordinationStore, Store, WorkStore } from './port/store.ts';

/** The parts of the work layer. */
const WORK_PARTS = [
  'records',
  'log',
  'streams',
  'workflows',
  'intents',
  'runs',
] as const satisfies (keyof WorkStore)[];

/** Whether the store offers the work layer, too. */
export function offersWork(store: CoordinationStore | Store): store is Store {
  return WORK_PARTS.every((part) => part in store);
}

/**
 * A store that offers leases, members and signals alone, as a whole store: every verb of the work
 * layer rejects with `STORE_LACKS_WORK`.
 */
export function coordinationOnly(store: CoordinationStore): Store {
  const part = <P extends keyof WorkStore>(name: P) => lacking(store.name, name) as WorkStore[P];
  return {
    name: store.name,
    leases: store.leases,
    members: store.members,
    signals: store.signals,
    ...(store.identity !== undefined && { identity: store.identity }),
    ...(store.bounds !== undefined && { bounds: store.bounds }),
    ...(store.guard !== undefined && { guard: store.guard }),
    ...(store.copies !== undefined && { copies: store.copies }),
    records: part('records'),
    log: part('log'),
    streams: part('streams'),
    workflows: part('workflows'),
    intents: part('intents'),
    runs: part('runs'),
    examine: () => store.examine(),
    close: () => store.close(),
  };
}

function lacking(store: string, part: keyof WorkStore): object {
  return new Proxy(
    {},
    {
      get: (_, verb) => {
        // `await` on the part itself must not take it for a promise.
        if (typeof verb === 'symbol' || verb === 'then') return undefined;
        return async () => {
          throw new StoreLacksWorkError({ store, verb: `${part}.${verb}` });
        };
      },
    },
  );
}
