/**
 * The server as an app. Users mount it in an app of their own, or serve it with `serve`. All routes
 * are in one table (`routes/route-table.ts`); `http/request.ts` handles each request.
 */
import type { Hono } from 'hono';
import { checkAppOptions } from '../config-schema.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { checkKnown } from '../core/options.ts';
import { type Random, systemRandom } from '../core/random.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Intents } from '../intents/intents.ts';
import { builtPage, pageReader } from './dashboard-files.ts';
import { directHandler, offerDirect } from './http/direct.ts';
import { EntryPasses } from './http/entry-passes.ts';
import { hostNames } from './http/foreign-pages.ts';
import { type LanSettings, parseLan } from './http/lan.ts';
import { mount } from './http/mount.ts';
import { type FailedRequest, handleRequest, type RequestPolicy } from './http/request.ts';
import { type LimitSettings, RequestGate } from './http/request-gate.ts';
import { directFetch } from './http/response.ts';
import type { Route } from './http/route.ts';
import { makeToken, TokenSet, type TokenSettings } from './http/token-set.ts';
import { Metrics } from './metrics/metrics.ts';
import { type Readiness, ReadinessState } from './readiness-state.ts';
import { type RouteOptions, routeTable } from './routes/route-table.ts';
import type { ServerContext } from './server-context.ts';
import type { StreamOptions } from './streams/client-set.ts';
import { EventStream } from './streams/event-stream.ts';
import { FleetStream } from './streams/fleet-stream.ts';

export interface AppOptions extends RouteOptions {
  /** Tokens of clients; without any, the app makes a token with the scope v3:admin: `madeToken`. */
  tokens?: readonly TokenSettings[];
  /** Accepts intents; default `holdfast.intents()`, which the app then starts and stops. */
  intents?: Intents;
  /**
   * Networks that clients may be in; default all. Needs `@hono/node-server`: other servers do not
   * say which client is connected, and every request is refused.
   */
  lan?: LanSettings;
  /** Host names, besides `localhost` and bare addresses. Default any; for the page none. */
  hosts?: readonly string[];
  /** Folder of the page's files; default those of this package. */
  pageFolder?: string;
  /** Passes into the page; default: passes for `madeToken`, where no token is configured. */
  passes?: EntryPasses;
  limits?: LimitSettings;
  /** Limits of clients that watch streams. */
  events?: StreamOptions;
  /** Labels of all metrics, for processes that share a port: `{ process: '2' }`. Default none. */
  metricLabels?: Readonly<Record<string, string>>;
  /** How long a body may take to arrive; default 10 s. */
  bodyTimeout?: Duration;
  /** How long a route may take before the client gets a 503; default 15 s. */
  handlerTimeout?: Duration;
  /** Called with unexpected errors; default `console.error`. */
  onError?: (error: unknown, where: FailedRequest) => void;
  clock?: Clock;
  random?: Random;
}

export interface HoldfastApp {
  /** To be mounted: `mine.route('/holdfast', app.hono)`. */
  readonly hono: Hono;
  readonly fetch: Hono['fetch'];
  readonly routes: readonly Route[];
  /** The checks behind `/readyz`; add your own. */
  readonly readiness: Readiness;
  /** The token that the app made because none is configured; null where tokens are configured. */
  readonly madeToken: string | null;
  /** Makes passes for addresses of the page; null where tokens are configured. */
  readonly passes: EntryPasses | null;
  /** Ends streams. Requests in flight are still answered. */
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
  'metricLabels',
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
  const { clock = systemClock, random = systemRandom, tokens = [] } = options;
  const made = tokens.length === 0 ? makeToken(random) : null;
  const policy = {
    ...policyOf(options, clock),
    tokens: new TokenSet(made === null ? tokens : [made], clock),
  };
  const intents = options.intents ?? holdfast.intents();
  const ownsIntents = options.intents === undefined;
  if (ownsIntents) intents.start();
  const closing = new AbortController();
  const server = contextOf(holdfast, intents, options, closing.signal);
  server.readiness.add('intents', () => intents.trouble);
  const passes = options.passes ?? (made && new EntryPasses({ token: made.token, clock, random }));
  const read = pageReader(options.pageFolder ?? builtPage());
  const routes = routeTable(server, options, { read, passes });
  const onAnswered: RequestPolicy['onAnswered'] = (answered) =>
    server.metrics.recordRequest(answered);
  const whole: RequestPolicy = { ...policy, server, onAnswered };
  const hono = mount(routes, (c, destination) => handleRequest(whole, c, destination));
  const fetch = directFetch(hono);
  offerDirect(fetch, directHandler(routes, whole));
  return {
    hono,
    fetch,
    routes,
    readiness: server.readiness,
    madeToken: made?.token ?? null,
    passes,
    async close() {
      closing.abort();
      if (ownsIntents) await intents.stop();
    },
  };
}

function policyOf(options: AppOptions, clock: Clock) {
  const { lan, hosts, limits = {}, onError = logError } = options;
  return {
    limits: new RequestGate(limits, clock),
    lan: lan === undefined ? null : parseLan(lan),
    hosts: hosts === undefined ? null : hostNames(hosts),
    pageHosts: hostNames(hosts ?? []),
    bodyTimeoutMs: durationMs(options.bodyTimeout ?? DEFAULT_BODY_MS, 'bodyTimeout'),
    handlerTimeoutMs: durationMs(options.handlerTimeout ?? DEFAULT_HANDLER_MS, 'handlerTimeout'),
    onError,
  };
}

function contextOf(
  holdfast: Holdfast,
  intents: Intents,
  options: AppOptions,
  closing: AbortSignal,
): ServerContext {
  const { clock = systemClock, random = systemRandom, events = {}, metricLabels } = options;
  const eventStream = new EventStream(holdfast.log, clock, events);
  const fleetStream = new FleetStream(holdfast.fleet, clock, events);
  const readiness = new ReadinessState(holdfast, clock, closing);
  const metrics = new Metrics(holdfast, clock, eventStream, metricLabels);
  const closeAll = () => {
    for (const each of [eventStream, fleetStream, readiness, metrics]) each.close();
  };
  closing.addEventListener('abort', closeAll, { once: true });
  return {
    holdfast,
    intents,
    clock,
    random,
    closing,
    eventStream,
    fleetStream,
    readiness,
    metrics,
  };
}

function logError(error: unknown, { requestId, method, path }: FailedRequest): void {
  console.error(`holdfast: ${method} ${path ?? '(no route)'} failed, request ${requestId}:`, error);
}
