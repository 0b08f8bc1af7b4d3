// biome-ignore-all assist/source/organizeImports: the blocks are in learning order
/** Holdfast: leases with fences, and all that uses them. Start with docs/getting-started.md. */

// Open a store.
export {
  Holdfast,
  type ListOptions,
  type OpenOptions,
  type OperatorAct,
  open,
} from './holdfast.ts';
export type { StoreArgument } from './opening.ts';
export {
  type ApiConfig,
  defineConfig,
  type HoldfastConfig,
  ROLES,
  type Role,
  type RunnerConfig,
  type TypedConfig,
} from './config.ts';
export type { Keyspace, MaxTtlOption, MaxTtls } from './store/port/keyspaces.ts';
export type { ReadRecord, Records, WriteOptions } from './records.ts';
export type { Retention, RetentionOptions } from './retention.ts';

// Leases, elections and pools.
export type { AcquireOptions } from './lease/options.ts';
export type { AcquireResult, HeldContext } from './lease/leases.ts';
export type { Lease, LeaseSet } from './lease/lease.ts';
export type { GuardableTransaction } from './lease/guard.ts';
export type {
  ReleaseOptions,
  ReleaseResult,
  StopOptions,
  TransferOptions,
  TransferResult,
} from './lease/release.ts';
export type { Confirmation, Deadline, Validity } from './core/validity.ts';
export type { TenureState } from './lease/tenure.ts';
export type { HoldOptions, LeaseClassName, TimingOptions, Timings } from './lease/timings.ts';
export type { NotRun, OnceOptions, OnceResult } from './lease/once.ts';
export type { OnCrash, PeriodOptions } from './lease/period.ts';
export type {
  RemoteAcquireOptions,
  RemoteGrant,
  RemoteLease,
  RemoteLeases,
} from './lease/remote-leases.ts';
export type { RevokeOptions, RevokeResult } from './lease/revocation.ts';
export {
  FENCE_GUARD_LUA,
  FENCE_HEADER,
  FenceGate,
  fenceFromHeaders,
  fenceHeaders,
  fenceSql,
  fenceStaleFrom,
} from './lease/fence.ts';
export {
  Election,
  type ElectionState,
  type ElectOptions,
  type LostLeadership,
} from './lease/election.ts';
export type {
  Pool,
  PoolOptions,
  SlotContext,
  SlotOptions,
  SlotResult,
  SlotView,
} from './lease/pool/pool.ts';
export type { Taken as TakenSlot } from './lease/pool/slot-set.ts';
export type { Census, ClassCensus } from './lease/census.ts';
export * from './lease/pool/errors.ts';

// Targets, and the fleet that shares them.
export type {
  AddTargetResult,
  ChangeTargetResult,
  ListTargetsOptions,
  NewTarget,
  TargetChange,
  TargetList,
  TargetStore,
} from './fleet/targets/target-store.ts';
export {
  TARGET_KINDS,
  type TargetIds,
  type TargetKind,
  type TargetRecord,
} from './fleet/targets/target-record.ts';
export type { Target } from './fleet/targets/target-source.ts';
export type { Poller, PollerOptions } from './fleet/poller.ts';
export type { Poll, PollContext } from './fleet/poll/poll-scheduler.ts';
export type { Runner, RunnerOptions } from './fleet/runner.ts';
export type { Run, RunContext } from './fleet/run/task-scheduler.ts';
export type { FleetService, FleetServiceOptions } from './fleet/fleet-service.ts';
export type { WorkContext } from './fleet/member/work-run.ts';
export type { HttpPollOptions } from './fleet/poll/http/http-options.ts';
export type { HttpResult } from './fleet/poll/http/http-poller.ts';
export { ZONES, type Zone } from './fleet/poll/http/addresses.ts';
export type {
  StoredResult,
  TargetOutcome,
  WorkOutcome,
  WorkOutcome as PollOutcome,
} from './fleet/poll/result-writer.ts';
export type { RecentPoll } from './fleet/poll/poll-history.ts';
export type { LeaseInfo, LeaseManager, ManagerState } from './fleet/member/lease-manager.ts';
export type { Vitals } from './fleet/view/member.ts';
export type { Explanation } from './fleet/plan/explain.ts';
export type { Obstacle } from './fleet/view/fleet-target.ts';
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
  Transfer as TargetTransfer,
  TransferOptions as TargetTransferOptions,
} from './fleet/watch/fleet.ts';
export * from './fleet/errors.ts';
export * from './fleet/targets/errors.ts';

// Workflows.
export type {
  ClaimOptions,
  ResultOptions,
  Revocation,
  StartOutcome,
  Workflows,
  WorkflowView,
} from './workflow/workflows.ts';
export type {
  WorkflowCode,
  WorkflowFunction,
  WorkflowFunctionOptions,
} from './workflow/workflow-function.ts';
export type { ReceivedSignal, StepContext } from './workflow/workflow-run.ts';
export type { RetryPolicy } from './workflow/retry-policy.ts';
export type {
  CallOptions,
  EmitOptions,
  Handoff,
  HandoffOptions,
  Orchestrator,
  StepOptions,
  WaitOptions,
} from './workflow/orchestrator.ts';
export type { CallResults } from './workflow/kept-step.ts';
export type { Action, ActionFailure, ActionResult } from './workflow/action.ts';
export type { Processor, State as ProcessorState } from './workflow/processor.ts';
export type { ProcessorOptions, ProcessorRole } from './workflow/processor-options.ts';
export type { HandlerContext } from './workflow/attempt.ts';
export type {
  ActionDefinition,
  ActionDefinitions,
  InputOf,
  OutputOf,
  PayloadIn,
  PayloadOut,
  ResultIn,
  ResultOut,
} from './workflow/schema.ts';
export type { Schema, SchemaIssue, SchemaResult } from './core/schema.ts';
export type { DeadLetter, DeadLetters } from './workflow/dead-letters.ts';
export * from './workflow/errors.ts';

// Intents, their sessions, and the workers that run these.
export type {
  Accepted,
  IntentOptions,
  Intents,
  SessionPage,
  SessionQuery,
  Submitted,
  SubmitOptions,
} from './intents/intents.ts';
export {
  defineKind,
  type KindCommand,
  type KindContext,
  type KindDeclarations,
  type KindFunction,
  type KindOptions,
  type StartFacts,
} from './intents/kind.ts';
export type {
  Intent,
  Requester,
  Start,
  Stop,
  StopKey,
  StreamStart,
  StreamStop,
  VodStart,
  Wanted as WantedSession,
} from './intents/intent.ts';
export {
  type IntentSession,
  OUTCOMES,
  type Outcome,
  REASONS,
  type Reason,
  type SessionBody,
  type SessionStatus,
} from './intents/intent-session.ts';
export type { SecretOptions } from './intents/secret-set.ts';
export type { State as WorkerState, Worker } from './worker/worker.ts';
export type {
  CommandPipeline,
  FunctionPipeline,
  PipelineOption,
  ResourceOptions,
  WorkerOptions,
} from './worker/worker-options.ts';
export type {
  PipelineContext,
  PipelineDetail,
  PipelineEnd,
  PipelineFunction,
} from './worker/pipelines/pipeline.ts';
export * from './intents/errors.ts';
export * from './worker/errors.ts';

// Events and the shared log.
export type {
  ActionFacts,
  DoubtReason,
  EventName,
  Events,
  LeaseFacts,
  Listener,
  Violation as WorkflowViolation,
} from './core/events.ts';
export type { Gap, GapParts } from './core/gap.ts';
export type { DiagnosticsMessage } from './telemetry/diagnostics.ts';
export type {
  EventLog,
  EventPage,
  Followed,
  FollowedPage,
  FollowOptions,
  LoggedEvent,
} from './telemetry/event-log.ts';

// Errors, time and chance.
export * from './core/errors.ts';
export { type Clock, systemClock, type Timer } from './core/clock.ts';
export type { Duration } from './core/duration.ts';
export type { Random } from './core/random.ts';

// Stores, and the port for those who write one.
export { createMemoryStore } from './store/memory/memory-store.ts';
export type {
  AdoptableClient,
  AdoptableIoredis,
  AdoptableNodeRedis,
  IoredisClient,
  NodeRedisClient,
} from './store/redis/client/adoptable.ts';
export type {
  AdoptablePgClient,
  AdoptablePglite,
  AdoptablePgPool,
  AdoptablePostgres,
  AdoptablePostgresJs,
} from './store/postgres/adoptable.ts';
export type { Endpoint, MessageListener } from './store/redis/client/link.ts';
export type {
  AskForLogin,
  NatMap,
  RedisLinkOptions,
  RedisLogin,
} from './store/redis/client/link-options.ts';
export type * from './store/port/bound-store.ts';
export type * from './store/port/examination.ts';
export type * from './store/port/guard-store.ts';
export {
  type Absent,
  type Advance,
  type AdvanceReply,
  type IntentStore,
  type PruneCall,
  SESSION_STATES,
  type SessionListCall,
  type SessionState,
  type StartReply,
  type StartRequest,
  type StopReply,
  type StopRequest,
  type StoredSession,
  type StoredSessionPage,
} from './store/port/intent-store.ts';
export type * from './store/port/lease-store.ts';
export type * from './store/port/log-store.ts';
export type * from './store/port/member-store.ts';
export type * from './store/port/record-store.ts';
export type * from './store/port/signal-store.ts';
export type * from './store/port/copy-store.ts';
export type * from './store/port/store.ts';
export type * from './store/port/stream-store.ts';
export type {
  ActionRef,
  BeginReply,
  BeginRequest,
  EmitStep,
  HandoffReply,
  HandoffStep,
  HeldAction,
  HistoryCall,
  HistoryEntry,
  HistoryPage,
  NewAction,
  NotHeld,
  ReserveCall,
  ResultsCall,
  ResultsPage,
  RevokeTenureCall,
  RevokeTenureReply,
  Settlement,
  Step as WorkflowStep,
  StepReply,
  StoredAction,
  StoredResult as StoredActionResult,
  Strictness,
  TakeCall,
  Taken as TakenAction,
  Tenancy as WorkflowTenancy,
  UpdateStep,
  WorkflowListCall,
  WorkflowSnapshot,
  WorkflowStore,
} from './store/port/workflow-store.ts';
export type {
  DueCall,
  DueReply,
  KeepReply,
  KeepStep,
  LoadedRun,
  NewSignal,
  PauseReply,
  PauseStep,
  RestartReply,
  RunFull,
  RunPhase,
  RunSnapshot,
  RunStore,
  SignalReply,
  StartRequest as StartRunRequest,
  StartRunReply,
  StepKind,
  StoredSignal,
  StoredStep,
} from './store/port/run-store.ts';
