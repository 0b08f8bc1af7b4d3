/**
 * The server as an app that can be mounted in a user's own, or served by `serve`. All its routes are in one table; see `exchange.ts` for
 * what happens to a request.
 */
import type { Hono } from 'hono';
import { checkAppOptions } from '../config-schema.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { checkKnown } from '../core/options.ts';
import { type Random, systemRandom } from '../core/random.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Intents } from '../intents/intents.ts';
import { builtPage, DashboardFiles } from './dashboard-files.ts';
import { EntryPasses } from './http/entry-passes.ts';
import { HostGuard } from './http/host-guard.ts';
import { IpRestriction, type LanSettings } from './http/ip-restriction.ts';
import { type LimitSettings, Limits } from './http/limits.ts';
import { mount } from './http/mount.ts';
import { type FailedRequest, RequestHandler } from './http/request.ts';
import type { Route } from './http/route.ts';
import { straightFetch } from './http/sending.ts';
import { makeToken, type TokenSettings, Tokens } from './http/tokens.ts';
import { type ObservationOptions, observe } from './observation.ts';
import type { ServerParts } from './parts.ts';
import type { Readiness } from './readiness.ts';
import { enterRoute } from './routes/enter.ts';
import { intentRoutes } from './routes/intents.ts';
import { pageRoutes } from './routes/page.ts';
import { sessionRoutes } from './routes/sessions.ts';

export interface AppOptions extends ObservationOptions {
  /** Who may ask; without any, a token that may do everything is made: see `madeToken`. */
  tokens?: readonly TokenSettings[];
  /** What accepts intents; default `holdfast.intents()`, which is then started and stopped with the app. */
  intents?: Intents;
  /** Which networks clients may be in; default all. Behind `@hono/node-server` only: others do not tell who is connected, and are refused. */
  lan?: LanSettings;
  /** Names this is reached under, besides `localhost` and bare addresses; default any, but none for the page. */
  hosts?: readonly string[];
  /** Where the page's files are; default those of this package. */
  pageFolder?: string;
  /** What the page is entered with; default: passes for the token that was made, where none is configured. */
  passes?: EntryPasses;
  limits?: LimitSettings;
  /** How long a body may take to arrive; default 10 s. */
  bodyTimeout?: Duration;
  /** How long until whoever asked is told that there is no answer; default 15 s. */
  handlerTimeout?: Duration;
  /** Told of what should not have happened; default `console.error`. */
  onError?: (error: unknown, where: FailedRequest) => void;
  clock?: Clock;
  random?: Random;
}

export interface HoldfastApp {
  /** To be mounted: `mine.route('/holdfast', app.hono)`. */
  readonly hono: Hono;
  readonly fetch: Hono['fetch'];
  readonly routes: readonly Route[];
  /** What keeps this instance from taking work, as `/readyz` tells; to be added to. */
  readonly readiness: Readiness;
  /** The token that was made because none is configured, for whoever started this; null where some are. */
  readonly madeToken: string | null;
  /** For addresses of the page that let in whoever started this; null where tokens are configured. */
  readonly passes: EntryPasses | null;
  /** Ends what goes on for long. Requests that are being answered still are. */
  close(): Promise<void>;
}

const KNOWN = new Set([
  'tokens',
  'intents',
  'lan',
  'hosts',
  'pageFolder',
  'passes',
  'limits',
  'bodyTimeout',
  'handlerTimeout',
  'onError',
  'events',
  'metrics',
  'stage',
  'clock',
  'random',
]);
const DEFAULT_BODY_MS = 10_000;
/** Longer than any call of the store may take. */
const DEFAULT_HANDLER_MS = 15_000;

export function createApp(holdfast: Holdfast, options: AppOptions = {}): HoldfastApp {
  checkKnown(options, KNOWN);
  checkAppOptions(options);
  const { clock = systemClock, random = systemRandom, lan, hosts, limits = {} } = options;
  const { tokens = [], onError = complain } = options;
  const made = tokens.length === 0 ? makeToken(random) : null;
  const ending = new AbortController();
  const terms = {
    tokens: new Tokens(made === null ? tokens : [made], clock),
    limits: new Limits(limits, clock),
    lan: lan === undefined ? null : new IpRestriction(lan),
    hosts: hosts === undefined ? null : new HostGuard(hosts),
    pageHosts: new HostGuard(hosts ?? []),
    bodyTimeoutMs: durationMs(options.bodyTimeout ?? DEFAULT_BODY_MS, 'bodyTimeout'),
    handlerTimeoutMs: durationMs(options.handlerTimeout ?? DEFAULT_HANDLER_MS, 'handlerTimeout'),
    onError,
  };
  const intents = options.intents ?? holdfast.intents();
  const isOurs = options.intents === undefined;
  if (isOurs) intents.start();
  const parts: ServerParts = {
    holdfast,
    intents,
    clock,
    random,
    closing: ending.signal,
    observers: new Set(),
  };
  const { routes: shown, readiness } = observe(parts, options, () => routes);
  readiness.add('intents', () => intents.trouble);
  const passes = options.passes ?? (made && new EntryPasses({ token: made.token, clock, random }));
  const files = new DashboardFiles(options.pageFolder ?? builtPage());
  const routes: readonly Route[] = [
    ...intentRoutes(parts),
    ...sessionRoutes(parts),
    ...shown,
    enterRoute(passes),
    ...pageRoutes(files),
  ];
  const hono = mount(routes, new RequestHandler({ ...terms, parts }));
  return {
    hono,
    fetch: straightFetch(hono),
    routes,
    readiness,
    madeToken: made?.token ?? null,
    passes,
    async close() {
      ending.abort();
      if (isOurs) await intents.stop();
    },
  };
}

function complain(error: unknown, { requestId, method, path }: FailedRequest): void {
  console.error(`holdfast: ${method} ${path ?? '(no route)'}, request ${requestId}:`, error);
}
