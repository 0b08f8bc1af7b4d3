/**
 * The built-in poll: requests a target's URL and returns the answer, and whether it has changed. An
 * answer of any status is a result; only no answer is an error.
 */
import type { Clock } from '../../../core/clock.ts';
import { HoldfastError } from '../../../core/errors.ts';
import { packageVersion } from '../../../core/version.ts';
import { fenceHeaders } from '../../../lease/fence.ts';
import type { Runtime } from '../../../store/runtime.ts';
import { PollFailedError } from '../../targets/errors.ts';
import { shownUrl, urlProblem } from '../../targets/target-url.ts';
import type { PollContext, PollHandler } from '../poll-scheduler.ts';
import { ConnectionPool, type Resolve } from './connection-pool.ts';
import { checkHttpPollOptions, DEFAULT_MAX_BYTES, type HttpPollOptions } from './http-options.ts';
import { type Answer, sendRequest } from './http-request.ts';
import { compareAnswer, type KnownAnswer } from './known-answer.ts';

export interface HttpResult {
  readonly status: number;
  /** From the beginning of the poll to the beginning of the answer, redirects included. */
  readonly latencyMs: number;
  /** Bytes of the body that were read. */
  readonly size: number;
  /** Whether the answer differs from the last one; null for the first answer, and for errors. */
  readonly changed: boolean | null;
  readonly truncated: boolean;
  readonly etag?: string;
  /** SHA-256 of the bytes that were read. */
  readonly hash?: string;
  /** The URL that redirects led to. */
  readonly finalUrl?: string;
}

interface HttpTarget {
  readonly id: string;
  readonly url?: string | undefined;
}

/** The lease, as a poll needs it. */
type Held = Pick<PollContext, 'signal' | 'fence' | 'assertHeld'>;

/** What the built-in poll needs of the runtime. */
type HttpRuntime = Pick<Runtime, 'clock' | 'instanceId'>;

/** Targets whose last answer is kept; beyond this the one that was polled longest ago goes. */
const MAX_TARGETS = 100_000;
const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Where a redirect leads; throws where it is not followed. */
export function redirectedTo(from: URL, location: string): URL {
  const fail = (why: string) => new PollFailedError({ url: shownUrl(from.href), why });
  if (!URL.canParse(location, from.href)) throw fail('it redirects to an invalid URL');
  const to = new URL(location, from.href);
  if (urlProblem(to.href) !== null) throw fail('it redirects to a scheme other than http or https');
  // An encrypted request must not be answered by a host in between.
  if (from.protocol === 'https:' && to.protocol === 'http:')
    throw fail('it redirects from https to http');
  return to;
}

export class HttpPoller implements PollHandler {
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #maxBytes: number;
  /** The last answer of each target, the one that was polled longest ago first. */
  readonly #answers = new Map<string, KnownAnswer>();
  readonly #pool: ConnectionPool;
  /** After an answer from a public address: a redirect must not lead into the allowed zones. */
  readonly #outsidePool: ConnectionPool;

  /** `resolve`: how names are resolved; default as the system does. */
  constructor({ clock, instanceId }: HttpRuntime, options: HttpPollOptions, resolve?: Resolve) {
    checkHttpPollOptions(options);
    this.#clock = clock;
    this.#userAgent = `holdfast/${packageVersion()} (${instanceId})`;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    this.#pool = new ConnectionPool(new Set(options.allow), resolve);
    this.#outsidePool = new ConnectionPool(new Set(), resolve);
  }

  readonly poll = async ({ id, url }: HttpTarget, held: Held): Promise<HttpResult> => {
    const startMs = this.#clock.monotonicMs();
    const first = targetUrl(id, url);
    const seen = this.#lastAnswer(id, first.href);
    const { answer, last } = await this.#follow(first, held, seen);
    const where = { url: first.href, finalUrl: last.href };
    const { comparison, known } = compareAnswer(this.#lastAnswer(id, first.href), where, answer);
    if (known !== null) this.#keepAnswer(id, known);
    return {
      status: answer.status,
      latencyMs: Math.round((answer.beganMs - startMs) * 10) / 10,
      size: answer.size,
      truncated: answer.truncated,
      ...comparison,
      ...(last.href !== first.href && { finalUrl: withoutSecrets(last) }),
    };
  };

  /** Drops the last answer of a target. */
  forget(id: string): void {
    this.#answers.delete(id);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    this.#pool.close();
    this.#outsidePool.close();
  }

  /** Under another URL nothing is known of the target. */
  #lastAnswer(id: string, url: string): KnownAnswer | undefined {
    const seen = this.#answers.get(id);
    return seen?.url === url ? seen : undefined;
  }

  #keepAnswer(id: string, answer: KnownAnswer): void {
    this.#answers.delete(id);
    this.#answers.set(id, answer);
    if (this.#answers.size <= MAX_TARGETS) return;
    const [eldest] = this.#answers.keys();
    if (eldest !== undefined) this.#answers.delete(eldest);
  }

  async #follow(
    first: URL,
    { signal, fence, assertHeld }: Held,
    seen: KnownAnswer | undefined,
  ): Promise<{ answer: Answer; last: URL }> {
    const parts = { signal, assertHeld, clock: this.#clock, maxBytes: this.#maxBytes };
    let url = first;
    let pool = this.#pool;
    for (let redirects = 0; ; redirects++) {
      const headers = {
        'user-agent': this.#userAgent,
        accept: '*/*',
        'accept-encoding': 'identity',
        // Fence and validators are for the target's own origin, not for a redirect's.
        ...(url.origin === first.origin && fenceHeaders(fence)),
        ...(seen?.finalUrl === url.href && seen.validators),
      };
      const answer = await sendRequest({ ...parts, url, headers, pool }).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : pollFailed(url, error);
      });
      const { location } = answer.headers;
      if (location === undefined || !REDIRECTS.has(answer.status)) return { answer, last: url };
      if (redirects === MAX_REDIRECTS)
        throw pollFailed(url, new Error(`more than ${MAX_REDIRECTS} redirects`));
      url = redirectedTo(url, location);
      if (answer.isFromOutside) pool = this.#outsidePool;
    }
  }
}

function targetUrl(id: string, url: string | undefined): URL {
  if (url === undefined) {
    const why = 'it has no url, and the poller has no poll function. Set one of them';
    throw new PollFailedError({ url: `target '${id}'`, why });
  }
  const why = urlProblem(url);
  if (why !== null) throw new PollFailedError({ url: shownUrl(url), why });
  const parsed = new URL(url);
  parsed.hash = '';
  return parsed;
}

function withoutSecrets(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  shown.hash = '';
  return shown.href;
}

/** A short message without the secrets that a URL may hold. */
function pollFailed(url: URL, error: unknown): Error {
  if (error instanceof HoldfastError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new PollFailedError({ url: shownUrl(url.href), why: code ?? message });
}
