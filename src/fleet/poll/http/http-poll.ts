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
import type { PollContext } from '../poll-scheduler.ts';
import { Dialer, type Resolve } from './dialer.ts';
import { HttpMemory, type KnownAnswer } from './http-memory.ts';
import { checkHttpPollOptions, DEFAULT_MAX_BYTES, type HttpPollOptions } from './http-options.ts';
import { type Answer, sendRequest } from './http-request.ts';

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

export interface HttpPoll {
  (target: HttpTarget, held: Held): Promise<HttpResult>;
  /** Drops the last answer of a target. */
  forget(id: string): void;
  /** Ends all connections. */
  close(): void;
}

/** What the built-in poll needs of the runtime. */
type HttpRuntime = Pick<Runtime, 'clock' | 'instanceId'>;

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** `resolve`: how names are resolved; default as the system does. */
export function httpPoll(rt: HttpRuntime, options: HttpPollOptions, resolve?: Resolve): HttpPoll {
  checkHttpPollOptions(options);
  const poller = new HttpPoller(rt, options, resolve);
  return Object.assign((target: HttpTarget, held: Held) => poller.poll(target, held), {
    forget: (id: string) => poller.forget(id),
    close: () => poller.close(),
  });
}

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

class HttpPoller {
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #maxBytes: number;
  readonly #memory = new HttpMemory();
  readonly #dialer: Dialer;
  /** After an answer from a public address: a redirect must not lead into the allowed zones. */
  readonly #outside: Dialer;

  constructor({ clock, instanceId }: HttpRuntime, options: HttpPollOptions, resolve?: Resolve) {
    this.#clock = clock;
    this.#userAgent = `holdfast/${packageVersion()} (${instanceId})`;
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
    this.#dialer = new Dialer(new Set(options.allow), resolve);
    this.#outside = new Dialer(new Set(), resolve);
  }

  async poll({ id, url }: HttpTarget, held: Held): Promise<HttpResult> {
    const startMs = this.#clock.monotonicMs();
    const first = targetUrl(id, url);
    const seen = this.#memory.get(id, first.href);
    const { answer, last } = await this.#follow(first, held, seen);
    const verdict = this.#memory.compare(id, { url: first.href, finalUrl: last.href }, answer);
    return {
      status: answer.status,
      latencyMs: Math.round((answer.beganMs - startMs) * 10) / 10,
      size: answer.size,
      truncated: answer.truncated,
      ...verdict,
      ...(last.href !== first.href && { finalUrl: withoutSecrets(last) }),
    };
  }

  forget(id: string): void {
    this.#memory.forget(id);
  }

  close(): void {
    this.#dialer.close();
    this.#outside.close();
  }

  async #follow(
    first: URL,
    { signal, fence, assertHeld }: Held,
    seen: KnownAnswer | undefined,
  ): Promise<{ answer: Answer; last: URL }> {
    const parts = { signal, assertHeld, clock: this.#clock, maxBytes: this.#maxBytes };
    let url = first;
    let dialer = this.#dialer;
    for (let redirects = 0; ; redirects++) {
      const headers = {
        'user-agent': this.#userAgent,
        accept: '*/*',
        'accept-encoding': 'identity',
        // Fence and validators are for the target's own origin, not for a redirect's.
        ...(url.origin === first.origin && fenceHeaders(fence)),
        ...(seen?.finalUrl === url.href && seen.validators),
      };
      const answer = await sendRequest({ ...parts, url, headers, dialer }).catch(
        (error: unknown) => {
          throw signal.aborted ? signal.reason : pollFailed(url, error);
        },
      );
      const { location } = answer.headers;
      if (location === undefined || !REDIRECTS.has(answer.status)) return { answer, last: url };
      if (redirects === MAX_REDIRECTS)
        throw pollFailed(url, new Error(`more than ${MAX_REDIRECTS} redirects`));
      url = redirectedTo(url, location);
      if (answer.isFromOutside) dialer = this.#outside;
    }
  }
}

function targetUrl(id: string, url: string | undefined): URL {
  if (url === undefined) {
    const why = `target '${id}' has no url, and the poller has no poll function of its own`;
    throw new PollFailedError({ url: 'nothing', why });
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
