import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import type { IntentOptions } from '../../src/intents/intents.ts';
import { type AppOptions, createApp } from '../../src/server/app.ts';
import type { TokenSettings } from '../../src/server/http/token-set.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';
import { countedStore } from './counted-store.ts';

/** One of each kind there is. */
export const TOKENS = {
  read: { id: 'reader', token: 'token-of-the-reader', scope: 'v3:read' },
  write: { id: 'writer', token: 'token-of-the-writer', scope: 'v3:write' },
  admin: { id: 'admin', token: 'token-of-the-admin', scope: 'v3:admin' },
  acme: { id: 'acme', token: 'token-of-tenant-acme', scope: 'v3:admin', tenant: 'acme' },
  beta: { id: 'beta', token: 'token-of-tenant-beta', scope: 'v3:write', tenant: 'beta' },
  expired: {
    ...{ id: 'expired', token: 'token-that-expired', scope: 'v3:admin' },
    expiresAt: '2025-12-31T23:59:59Z',
  },
} as const satisfies Record<string, TokenSettings>;

export type TokenName = keyof typeof TOKENS;

export interface Sent {
  readonly token?: TokenName | null;
  readonly headers?: Readonly<Record<string, string>> | Headers;
  /** Text goes as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Who is connected, as the server that serves would tell. */
  readonly peer?: string;
}

export interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what comes over the wire is anybody's
  readonly json: any;
}

export interface WorldOptions extends AppOptions {
  readonly intentOptions?: IntentOptions;
  /** Whether what happens here is written into the log; default off. */
  readonly history?: 'on' | 'off';
  /** Default one in memory. */
  readonly storeOn?: (clock: FakeClock) => Promise<Store>;
}

/** An app on a store in memory that counts what it is asked, and can fail; time stands still until it is moved. */
export async function serverWorld({
  intentOptions,
  history = 'off',
  storeOn = async (clock) => createMemoryStore({ clock }),
  ...options
}: WorldOptions = {}) {
  const clock = new FakeClock();
  const { store: faulty, faults } = faultyStore(await storeOn(clock), clock);
  const { store, calls } = countedStore(faulty);
  const random = seededRandom(7);
  const holdfast = await open(store, { clock, random, history, quarantine: 'off' });
  const intents = holdfast.intents({ secret: 's'.repeat(32), ...intentOptions });
  const errors: unknown[] = [];
  const app = createApp(holdfast, {
    ...{ clock, random, intents, tokens: Object.values(TOKENS) },
    onError: (error) => errors.push(error),
    ...options,
  });
  const ask = async (method: string, path: string, sent: Sent = {}): Promise<Got> => {
    const env = { incoming: { socket: { remoteAddress: sent.peer ?? '127.0.0.1' } } };
    const response = await app.fetch(requestOf(method, path, sent), env);
    const type = response.headers.get('content-type') ?? '';
    // A stream of events has no end to wait for.
    if (/event-stream/.test(type)) await response.body?.cancel();
    const text = /event-stream/.test(type) ? '' : await response.text();
    const isJson = /json/.test(type);
    const { status, headers } = response;
    return { status, headers, text, json: isJson && text !== '' ? JSON.parse(text) : undefined };
  };
  calls.length = 0;
  return { app, ask, calls, clock, errors, faults, holdfast, intents, store };
}

export type ServerWorld = Awaited<ReturnType<typeof serverWorld>>;

export function requestOf(method: string, path: string, sent: Sent = {}): Request {
  const { token = 'admin', body } = sent;
  const headers = new Headers(sent.headers);
  if (token !== null && !headers.has('authorization'))
    headers.set('authorization', `Bearer ${TOKENS[token].token}`);
  if (body !== undefined && !headers.has('content-type'))
    headers.set('content-type', 'application/json');
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const content = isRaw || body instanceof ReadableStream ? body : JSON.stringify(body);
  return new Request(`http://localhost${path}`, {
    ...{ method, headers },
    ...(body !== undefined && { body: content, duplex: 'half' as const }),
  });
}
