export { type ConformanceHarness, storeConformance } from './conformance/conformance.ts';
export type { ConformanceStore } from './conformance/kit.ts';
export { FakeClock } from './fakes/fake-clock.ts';
export { type Address, FaultProxy } from './fakes/fault-proxy.ts';
export { faultyStore, type StoreFaults } from './fakes/faulty-store.ts';
export type { Counters } from './sim/counters.ts';
export { KINDS as FAULT_KINDS } from './sim/faults.ts';
export {
  draw,
  type Episode,
  type Fault,
  type FaultKind,
  type Invariant,
  type Shrunk,
  shrink,
  type Violation,
  type WorldOptions,
  type WorldReport,
} from './sim/index.ts';
export { MIXED_KINDS, type MixedKind } from './sim/mixed-faults.ts';
export { DIMENSIONS, type Dimension, type Draw } from './sim/mixed-setting.ts';
export type { Note as TraceNote } from './sim/trace.ts';
export { type AnyEpisode, simulateWorld } from './sim/world.ts';
export type {
  Effect,
  SimulationInvariant,
} from './simulate/effect-audit.ts';
export type { Escape } from './simulate/escape-watch.ts';
export { SIMULATED_FAULTS, type SimulatedFault } from './simulate/faults.ts';
export type {
  SimulatedClock,
  SimulatedInstance,
  SimulatedOpenOptions,
  SimulatedTools,
} from './simulate/instance.ts';
export type { SimulateOptions, SimulationEnd } from './simulate/options.ts';
export {
  SimulationFailedError,
  type SimulationFailure,
  SimulationReport,
  simulate,
} from './simulate/simulate.ts';
export {
  type Sink,
  type SinkRules,
  SinkUnansweredError,
  type SinkWriteOptions,
} from './simulate/sink.ts';
export { type StepOptions, TestBed, type TestInstance } from './test-bed.ts';
