export { type Clock, systemClock, type Timer } from './base/clock.ts';
export type { Duration } from './base/duration.ts';
export * from './base/errors.ts';
export type { DoubtReason, EventName, Events, Listener } from './base/events.ts';
export * from './base/fleet-errors.ts';
export * from './base/intent-errors.ts';
export type { Random } from './base/random.ts';
export * from './base/session-errors.ts';
export * from './base/worker-errors.ts';
export * from './base/workflow-errors.ts';
export type { Explanation } from './cluster/explain.ts';
export type { LeaseInfo, LeaseManager, ManagerState } from './cluster/lease-manager.ts';
export type { Vitals } from './cluster/vitals.ts';
export { defineConfig, type HoldfastConfig } from './config.ts';
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
} from './fleet/fleet.ts';
export { Holdfast, type ListOptions, type OpenOptions, open } from './holdfast.ts';
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
export type { LeaseClassName } from './lease/classes.ts';
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
export type {
  Lease,
  LeaseSet,
  ReleaseOptions,
  ReleaseResult,
  TransferOptions,
  TransferResult,
} from './lease/lease.ts';
export type { AcquireResult, HeldContext } from './lease/leases.ts';
export type { AcquireOptions } from './lease/options.ts';
export type {
  Pool,
  PoolOptions,
  SlotContext,
  SlotOptions,
  SlotResult,
  SlotView,
} from './lease/pool.ts';
export type { RevokeOptions, RevokeResult } from './lease/revocation.ts';
export type { TenureState } from './lease/tenure.ts';
export type { TimingOptions, Timings } from './lease/timings.ts';
export type { HttpPollOptions } from './polling/http-options.ts';
export type { HttpResult } from './polling/http-poll.ts';
export type { Poller, PollerOptions } from './polling/poller.ts';
export type { RecentPoll } from './polling/recent-polls.ts';
export type { StoredResult } from './polling/results.ts';
export type { Poll, PollContext } from './polling/schedule.ts';
export type { Target } from './polling/targets.ts';
export type { WriteOptions } from './records.ts';
export type { Retention, RetentionOptions } from './retention.ts';
export type { IntentStore } from './store/intent-store.ts';
export { createMemoryStore } from './store/memory/memory-store.ts';
export type { AdoptableClient } from './store/redis/adoptable.ts';
export type * from './store/store.ts';
export type * from './store/stream-store.ts';
export type { WorkflowStore } from './store/workflow-store.ts';
export type { EventLog, EventPage, Followed, LoggedEvent } from './telemetry/event-log.ts';
export type { PipelineContext, PipelineFunction } from './worker/pipeline.ts';
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
