/**
 * The role `api`: the HTTP server. It listens before the store is open, and answers that it is not
 * ready. When the store is open, the same server passes requests to the app. Only `holdfast up`
 * with this role loads this file.
 */

import type { ApiConfig, HoldfastConfig } from '../../../config.ts';
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { systemRandom } from '../../../core/random.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Stage } from '../../../server/demo-stage.ts';
import { directOf, offerDirect } from '../../../server/http/direct.ts';
import { makeToken, type TokenSettings } from '../../../server/http/token-set.ts';
import {
  createApp,
  EntryPasses,
  type HoldfastApp,
  readTokens,
  type Serving,
  serve,
} from '../../../server/index.ts';
import { CliError, EXIT } from '../../exit-codes.ts';
import { intentOptions } from '../intents/submission.ts';
import type { Instance } from './instance.ts';
import { answerNotReady } from './not-ready.ts';

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = 4747;

type AppConfig = Omit<ApiConfig, 'host' | 'port' | 'processes' | (typeof FOR_SERVING)[number]>;

/** The options of the HTTP server. The rest is for the app. */
const FOR_SERVING = ['headersTimeout', 'requestTimeout', 'idleTimeout', 'maxConnections'] as const;

export interface UpServerOptions {
  readonly settings: HoldfastConfig;
  /** Has the tokens, or files of tokens. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Which of the processes that share the port this is; null: the only one. */
  readonly process?: string | null;
  /** The demo's instances, which the page can kill and freeze. Default: none. */
  readonly stage?: Stage;
  /** Gets unexpected errors as text, with facts. */
  onError(message: string, facts: Readonly<Record<string, unknown>>): void;
}

export class UpServer {
  /** Problems of the configured tokens. */
  readonly warnings: readonly string[];
  /** A token with all rights, made if none is configured. */
  readonly madeToken: string | null;
  readonly #options: UpServerOptions;
  readonly #tokens: readonly TokenSettings[];
  readonly #passes: EntryPasses | null;
  #pass: string | null = null;
  #app: HoldfastApp | null = null;
  #serving: Serving | null = null;

  constructor(options: UpServerOptions) {
    const { tokens, warnings } = readTokens(options.env ?? process.env);
    const configured = [...tokens, ...(options.settings.api?.tokens ?? [])];
    const made = configured.length === 0 ? makeToken(systemRandom) : null;
    this.warnings = warnings;
    this.madeToken = made?.token ?? null;
    this.#options = options;
    this.#tokens = made === null ? configured : [made];
    this.#passes =
      made && new EntryPasses({ token: made.token, clock: systemClock, random: systemRandom });
  }

  /** The address of the API. */
  get url(): string {
    return this.#serving?.url ?? '';
  }

  /**
   * The address of the page. With a made token it opens the page once, within ten minutes, without
   * a token: do not log it.
   */
  get pageUrl(): string {
    this.#pass ??= this.#passes?.issue() ?? null;
    return this.#pass === null ? `${this.url}/` : `${this.url}/#pass=${this.#pass}`;
  }

  /** Checks the settings on a temporary store. */
  async rehearse(holdfast: Holdfast): Promise<void> {
    await this.#appOn(holdfast).close();
  }

  /** Listens. `isMoved`: on a free port, because the default one is taken. */
  async open(): Promise<{ isMoved: boolean }> {
    const { host = DEFAULT_HOST, port } = this.#options.settings.api ?? {};
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

  /**
   * From now on the app answers requests. An instance is not ready while its worker waits for its
   * name, and after its poller or worker has stopped.
   */
  lead(holdfast: Holdfast, parts: Pick<Instance, 'poller' | 'worker'>): void {
    const app = this.#appOn(holdfast);
    for (const [name, part] of Object.entries(parts))
      app.readiness.add(name, () => {
        const state = part?.state;
        if (state === 'starting') return `its ${name} waits for its name`;
        return state === 'stopping' || state === 'stopped' ? `its ${name} has stopped` : null;
      });
    this.#app = app;
  }

  /** Takes no more requests. Running ones may finish within that time. */
  async close(withinMs: number): Promise<void> {
    await this.#serving?.close({ within: withinMs });
  }

  #appOn(holdfast: Holdfast): HoldfastApp {
    const intents = holdfast.intents(intentOptions(this.#options.settings));
    intents.start();
    const { stage, process = null } = this.#options;
    const app = createApp(holdfast, {
      ...this.#appConfig(),
      ...(stage !== undefined && { stage }),
      ...(process !== null && { metricLabels: { process } }),
      intents,
      tokens: this.#tokens,
      ...(this.#passes !== null && { passes: this.#passes }),
      onError: (error, where) => {
        const [message, stack] =
          error instanceof Error ? [error.message, error.stack] : [String(error)];
        this.#options.onError(`could not answer a request: ${message}`, { ...where, stack });
      },
    });
    const close = async () => {
      await app.close();
      await intents.stop();
    };
    return { ...app, close };
  }

  #appConfig(): AppConfig {
    const { host: _, port: __, processes: ___, ...config } = this.#options.settings.api ?? {};
    const own: readonly string[] = FOR_SERVING;
    return Object.fromEntries(Object.entries(config).filter(([name]) => !own.includes(name)));
  }

  #serve(port: number): Promise<Serving> {
    const config = this.#options.settings.api ?? {};
    const { host = DEFAULT_HOST } = config;
    const own: readonly string[] = FOR_SERVING;
    const pace = Object.fromEntries(Object.entries(config).filter(([name]) => own.includes(name)));
    const away = answerNotReady({ random: systemRandom });
    const fetch: HoldfastApp['fetch'] = (request, ...context) =>
      this.#app === null ? away(request) : this.#app.fetch(request, ...context);
    offerDirect(fetch, (...exchange) => {
      const direct = this.#app === null ? null : directOf(this.#app.fetch);
      return direct?.(...exchange) ?? false;
    });
    return serve(
      {
        madeToken: this.madeToken,
        fetch,
        close: async () => this.#app?.close(),
      },
      { ...pace, host, port, clock: systemClock },
    );
  }
}

function taken(host: string, port: number): CliError {
  const message = `port ${port} of ${host} is used by another program. Choose another with --port, or leave --port out to use a free one.`;
  return new CliError(EXIT.config, 'CONFIG_INVALID', message, { field: 'port' });
}

/** The rule has the system's error code. */
function isTaken(error: unknown): boolean {
  return error instanceof ConfigError && error.rule.includes('EADDRINUSE');
}
