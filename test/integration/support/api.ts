import { type Child, spawnChild } from '../../support/child.ts';

/** What test/children/api.mjs is told. */
export interface ApiOptions {
  readonly url: string;
  readonly prefix?: string;
  readonly intents?: Readonly<Record<string, unknown>>;
  /** As a function where it says when something is over: it is asked once the process is about to serve. */
  readonly app?: AppSettings | (() => AppSettings);
  readonly dies?: 'before the step' | 'after the step';
  /** Default off. */
  readonly quarantine?: 'on' | 'off';
  readonly maxTtl?: string;
}

type AppSettings = Readonly<Record<string, unknown>>;

export interface Token {
  readonly id: string;
  readonly token: string;
  readonly scope: 'v3:read' | 'v3:write' | 'v3:admin';
  readonly tenant?: string;
  readonly expiresAt?: string;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of JSON, problems included; else null. */
  readonly body: Readonly<Record<string, unknown>>;
}

export const ADMIN: Token = {
  id: 'admin',
  token: 'the-token-of-the-administrator',
  scope: 'v3:admin',
};
export const WRITER: Token = { id: 'writer', token: 'the-token-of-a-writer', scope: 'v3:write' };

const START_DEADLINE_MS = 60_000;
const ANSWER_DEADLINE_MS = 20_000;

/** A process that serves the interface, and how to ask it. */
export class Api implements AsyncDisposable {
  readonly child: Child;
  readonly url: string;

  constructor(child: Child, port: number) {
    this.child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Rejects where there was no answer: the connection was cut. */
  async ask(
    method: string,
    path: string,
    { as, body }: { as?: Token; body?: unknown } = {},
  ): Promise<Answered> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(as !== undefined && { Authorization: `Bearer ${as.token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    const { status, headers } = response;
    return { status, headers, text, body: isJson ? JSON.parse(text) : null };
  }

  get(path: string, as: Token = WRITER): Promise<Answered> {
    return this.ask('GET', path, { as });
  }

  /** An intent of type `stream.start`. */
  start(serviceRef: string, { as = WRITER, ...more }: StartOptions = {}): Promise<Answered> {
    return this.ask('POST', '/api/v3/intents', {
      as,
      body: { type: 'stream.start', serviceRef, ...more },
    });
  }

  stop(sessionId: string, { as = WRITER, ...more }: StopOptions = {}): Promise<Answered> {
    return this.ask('POST', '/api/v3/intents', {
      as,
      body: { type: 'stream.stop', sessionId, ...more },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.kill();
  }
}

interface StartOptions {
  readonly as?: Token;
  readonly profile?: string;
  readonly clientId?: string;
}

interface StopOptions {
  readonly as?: Token;
  readonly clientId?: string;
  readonly force?: boolean;
}

/** Two tokens unless told otherwise: `ADMIN` and `WRITER`. */
export async function startApi({ app, ...options }: ApiOptions): Promise<Api> {
  const child = spawnChild('api.mjs');
  try {
    await child.next('loaded', START_DEADLINE_MS);
    const settings = typeof app === 'function' ? app() : app;
    child.send({ ...options, app: { tokens: [ADMIN, WRITER], ...settings } });
    const { port } = await child.next('ready', START_DEADLINE_MS);
    return new Api(child, Number(port));
  } catch (error) {
    await child.kill();
    throw error;
  }
}
