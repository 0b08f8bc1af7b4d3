/**
 * The role `api`: what listens for requests. It listens before the store is there, and says so to whoever asks; when it is there, the
 * same door leads to the app. Whatever this needs is loaded with this file, and only where the role is wanted.
 */

import type { ApiConfig, HoldfastConfig } from '../../../config.ts';
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { systemRandom } from '../../../core/random.ts';
import type { Poller } from '../../../fleet/poller.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Stage } from '../../../server/demo-stage.ts';
import { makeToken, type TokenSettings } from '../../../server/http/tokens.ts';
import {
  createApp,
  EntryPasses,
  type HoldfastApp,
  readTokens,
  type Serving,
  serve,
} from '../../../server/index.ts';
import type { Worker } from '../../../worker/worker.ts';
import { CliError, EXIT } from '../../exit-codes.ts';
import { intentOptions } from '../intents/submission.ts';
import { answerNotReady } from './not-ready.ts';

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = 4747;

type AppConfig = Omit<ApiConfig, 'host' | 'port' | (typeof FOR_SERVING)[number]>;

/** What a configuration says to whatever listens; the rest is for the app. */
const FOR_SERVING = ['headersTimeout', 'requestTimeout', 'idleTimeout', 'maxConnections'] as const;

export interface FrontDoorParts {
  readonly settings: HoldfastConfig;
  /** Names tokens, or files of them; default that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Instances that may be killed and frozen for show; default none. */
  readonly stage?: Stage;
  /** Told of what should not have happened, in words, and where. */
  onError(message: string, facts: Readonly<Record<string, unknown>>): void;
}

export class FrontDoor {
  /** What whoever runs this should know of its tokens. */
  readonly warnings: readonly string[];
  /** Made because none is configured; it may do everything. */
  readonly madeToken: string | null;
  readonly #parts: FrontDoorParts;
  readonly #tokens: readonly TokenSettings[];
  readonly #passes: EntryPasses | null;
  #pass: string | null = null;
  #app: HoldfastApp | null = null;
  #serving: Serving | null = null;

  constructor(parts: FrontDoorParts) {
    const { tokens, warnings } = readTokens(parts.env ?? process.env);
    const configured = [...tokens, ...(parts.settings.api?.tokens ?? [])];
    const made = configured.length === 0 ? makeToken(systemRandom) : null;
    this.warnings = warnings;
    this.madeToken = made?.token ?? null;
    this.#parts = parts;
    this.#tokens = made === null ? configured : [made];
    this.#passes =
      made && new EntryPasses({ token: made.token, clock: systemClock, random: systemRandom });
  }

  /** Where it listens. */
  get url(): string {
    return this.#serving?.url ?? '';
  }

  /** Where people find the page. Where a token was made, the address lets in whoever opens it first, within ten minutes: it is not for logs. */
  get pageUrl(): string {
    this.#pass ??= this.#passes?.issue() ?? null;
    return this.#pass === null ? `${this.url}/` : `${this.url}/#pass=${this.#pass}`;
  }

  /** Throws what makes no sense in the settings; on a store that is soon thrown away. */
  async rehearse(holdfast: Holdfast): Promise<void> {
    await this.#appOn(holdfast).close();
  }

  /** Listens. Says whether the port is another than the usual one, because that is taken. */
  async open(): Promise<{ isMoved: boolean }> {
    const { host = DEFAULT_HOST, port } = this.#parts.settings.api ?? {};
    try {
      this.#serving = await this.#serve(port ?? DEFAULT_PORT);
      return { isMoved: false };
    } catch (error) {
      if (!isTaken(error)) throw error;
      if (port !== undefined) throw taken(host, port);
      this.#serving = await this.#serve(0);
      return { isMoved: true };
    }
  }

  /** From now on requests are answered. An instance is not ready while its worker waits for its name, nor once its poller or worker has stopped. */
  lead(holdfast: Holdfast, parts: { poller: Poller | null; worker: Worker | null }): void {
    const app = this.#appOn(holdfast);
    for (const [name, part] of Object.entries(parts))
      app.readiness.add(name, () => {
        const state = part?.state;
        if (state === 'starting') return `its ${name} waits for its name`;
        return state === 'stopping' || state === 'stopped' ? `its ${name} has stopped` : null;
      });
    this.#app = app;
  }

  /** Takes no more requests; those under way may finish in that time. */
  async close(withinMs: number): Promise<void> {
    await this.#serving?.close({ within: withinMs });
  }

  #appOn(holdfast: Holdfast): HoldfastApp {
    const intents = holdfast.intents(intentOptions(this.#parts.settings));
    intents.start();
    const { stage } = this.#parts;
    const app = createApp(holdfast, {
      ...this.#appConfig(),
      ...(stage !== undefined && { stage }),
      ...{ intents, tokens: this.#tokens },
      ...(this.#passes !== null && { passes: this.#passes }),
      onError: (error, where) => {
        const [message, stack] =
          error instanceof Error ? [error.message, error.stack] : [String(error)];
        this.#parts.onError(`failed to answer a request: ${message}`, { ...where, stack });
      },
    });
    const close = async () => {
      await app.close();
      await intents.stop();
    };
    return { ...app, close };
  }

  #appConfig(): AppConfig {
    const { host: _, port: __, ...config } = this.#parts.settings.api ?? {};
    const own: readonly string[] = FOR_SERVING;
    return Object.fromEntries(Object.entries(config).filter(([name]) => !own.includes(name)));
  }

  #serve(port: number): Promise<Serving> {
    const config = this.#parts.settings.api ?? {};
    const { host = DEFAULT_HOST } = config;
    const own: readonly string[] = FOR_SERVING;
    const pace = Object.fromEntries(Object.entries(config).filter(([name]) => own.includes(name)));
    const away = answerNotReady({ random: systemRandom });
    return serve(
      {
        madeToken: this.madeToken,
        fetch: (request, ...context) =>
          this.#app === null ? away(request) : this.#app.fetch(request, ...context),
        close: async () => this.#app?.close(),
      },
      { ...pace, host, port, clock: systemClock },
    );
  }
}

function taken(host: string, port: number): CliError {
  const message = `port ${port} of ${host} is taken by another program. Choose another with --port, or name none: then a free one is found.`;
  return new CliError(EXIT.config, 'CONFIG_INVALID', message, { field: 'port' });
}

/** Nobody but the system knows, and it says so in a word. */
function isTaken(error: unknown): boolean {
  return error instanceof ConfigError && error.rule.includes('EADDRINUSE');
}
