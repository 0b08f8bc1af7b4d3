export { defineConfig, type HoldfastConfig } from './config.ts';
export { type Clock, systemClock, type Timer } from './core/clock.ts';
export type { Duration } from './core/duration.ts';
export * from './core/errors.ts';
export type { DoubtReason, EventName, Events, Listener } from './core/events.ts';
export type { Random } from './core/random.ts';
export * from './fleet/errors.ts';
export type { LeaseInfo, LeaseManager, ManagerState } from './fleet/member/lease-manager.ts';
export type { Vitals } from './fleet/member/vitals.ts';
export type { Explanation } from './fleet/plan/explain.ts';
export type { HttpPollOptions } from './fleet/poll/http/http-options.ts';
export type { HttpResult } from './fleet/poll/http/http-poll.ts';
export type { Poll, PollContext } from './fleet/poll/poll-scheduler.ts';
export type { RecentPoll } from './fleet/poll/recent-polls.ts';
export type { StoredResult } from './fleet/poll/results.ts';
export type { Poller, PollerOptions } from './fleet/poller.ts';
export * from './fleet/targets/errors.ts';
export type { Target } from './fleet/targets/target-source.ts';
export type {
  Fleet,
  FleetChange,
  FleetPicture,
  FleetSighting,
  FleetView,
  MemberView,
  PicturedTarget,
  PollSample,
  TargetReason,
  TargetView,
} from './fleet/watch/fleet.ts';
export { Holdfast, type ListOptions, type OpenOptions, open } from './holdfast.ts';
export * from './intents/errors.ts';
export type {
  Intent,
  Requester,
  StreamStart,
  StreamStop,
  VodStart,
} from './intents/intent.ts';
export type { IntentSession, Outcome, Reason } from './intents/intent-session.ts';
export type {
  Accepted,
  IntentOptions,
  Intents,
  SessionPage,
  SessionQuery,
} from './intents/intents.ts';
export type { Census, ClassCensus } from './lease/census.ts';
export {
  Election,
  type ElectionState,
  type ElectOptions,
  type LostLeadership,
} from './lease/election.ts';
export {
  FENCE_GUARD_LUA,
  FENCE_HEADER,
  FenceGate,
  fenceFromHeaders,
  fenceHeaders,
  fenceSql,
  fenceStaleFrom,
} from './lease/fence.ts';
export type { Lease, LeaseSet } from './lease/lease.ts';
export type { AcquireResult, HeldContext } from './lease/leases.ts';
export type { AcquireOptions } from './lease/options.ts';
export * from './lease/pool/errors.ts';
export type {
  Pool,
  PoolOptions,
  SlotContext,
  SlotOptions,
  SlotResult,
  SlotView,
} from './lease/pool/pool.ts';
export type {
  ReleaseOptions,
  ReleaseResult,
  TransferOptions,
  TransferResult,
} from './lease/release.ts';
export type { RevokeOptions, RevokeResult } from './lease/revocation.ts';
export type { TenureState } from './lease/tenure.ts';
export type { LeaseClassName, TimingOptions, Timings } from './lease/timings.ts';
export type { WriteOptions } from './records.ts';
export type { Retention, RetentionOptions } from './retention.ts';
export { createMemoryStore } from './store/memory/memory-store.ts';
export type * from './store/port/bound-store.ts';
export type * from './store/port/examination.ts';
export type { IntentStore } from './store/port/intent-store.ts';
export type * from './store/port/lease-store.ts';
export type * from './store/port/log-store.ts';
export type * from './store/port/member-store.ts';
export type * from './store/port/record-store.ts';
export type * from './store/port/signal-store.ts';
export type * from './store/port/store.ts';
export type * from './store/port/stream-store.ts';
export type { WorkflowStore } from './store/port/workflow-store.ts';
export type { AdoptableClient } from './store/redis/client/adoptable.ts';
export type { EventLog, EventPage, Followed, LoggedEvent } from './telemetry/event-log.ts';
export * from './worker/errors.ts';
export type { PipelineContext, PipelineFunction } from './worker/pipelines/pipeline.ts';
export type { Worker } from './worker/worker.ts';
export type {
  CommandPipeline,
  FunctionPipeline,
  PipelineOption,
  ResourceOptions,
  WorkerOptions,
} from './worker/worker-options.ts';
export type { Action, ActionFailure, ActionResult } from './workflow/action.ts';
export type { HandlerContext } from './workflow/attempt.ts';
export type { DeadLetter, DeadLetters } from './workflow/dead-letters.ts';
export * from './workflow/errors.ts';
export type {
  EmitOptions,
  Handoff,
  HandoffOptions,
  Orchestrator,
} from './workflow/orchestrator.ts';
export type { Processor } from './workflow/processor.ts';
export type { ProcessorOptions, ProcessorRole } from './workflow/processor-options.ts';
export type { ActionDefinition, ActionDefinitions, Schema } from './workflow/schema.ts';
export type { ClaimOptions, Revocation, Workflows, WorkflowView } from './workflow/workflows.ts';
