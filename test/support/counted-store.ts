import type { Store } from '../../src/store/port/store.ts';

/** A store that says what it was asked: for tests of who never gets that far. */
export function countedStore(store: Store): { store: Store; calls: string[] } {
  const calls: string[] = [];
  const counted = (part: object, name: string): object =>
    new Proxy(part, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          calls.push(`${name}.${String(property)}`);
          return Reflect.apply(value, target, given);
        };
      },
    });
  const parts = ['leases', 'members', 'records', 'signals', 'log', 'streams', 'workflows'] as const;
  const more = ['intents', 'runs'] as const;
  const wrapped = [...parts, ...more].map((name) => [name, counted(store[name], name)]);
  return {
    calls,
    store: {
      ...(Object.fromEntries(wrapped) as Omit<Store, 'name' | 'examine' | 'close'>),
      name: store.name,
      examine: () => store.examine(),
      close: () => store.close(),
    },
  };
}
