export { type AppOptions, createApp, type HoldfastApp } from './app.ts';
export {
  STAGE_ACTIONS,
  type Stage,
  type StageAction,
  type StageActor,
  type StagePicture,
} from './demo-stage.ts';
export { EntryPasses } from './http/entry-passes.ts';
export type { LanSettings } from './http/lan.ts';
export { PROBLEMS, type ProblemName } from './http/problem.ts';
export type { FailedRequest } from './http/request.ts';
export type { LimitSettings, RateSettings } from './http/request-gate.ts';
export {
  type AuditEntry,
  type Caller,
  type DocumentedResponse,
  type Route,
  type RouteRequest,
  type RouteResult,
  SCOPES,
  type Scope,
} from './http/route.ts';
export type { TokenSettings } from './http/token-set.ts';
export { type Environment, type FoundTokens, readTokens } from './http/token-sources.ts';
export { createMetrics, type Metrics, type MetricsOptions } from './metrics/metrics.ts';
export {
  type GaugeCallback,
  type MeterOptions,
  type MetricsMeter,
  type ObservableGauge,
  recordMetrics,
} from './metrics/open-telemetry-metrics.ts';
export type { Labels } from './metrics/series-set.ts';
export type { Check, Readiness } from './readiness-state.ts';
export type { RouteOptions } from './routes/route-table.ts';
export { type Servable, type ServeOptions, type Serving, serve } from './serve.ts';
export type { AnsweredRequest } from './server-context.ts';
export type { StreamOptions } from './streams/client-set.ts';
