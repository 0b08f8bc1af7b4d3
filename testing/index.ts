export { type ConformanceHarness, storeConformance } from './conformance/conformance.ts';
export type { ConformanceStore } from './conformance/kit.ts';
export { FakeClock } from './fakes/fake-clock.ts';
export { FaultProxy } from './fakes/fault-proxy.ts';
export { faultyStore, type StoreFaults } from './fakes/faulty-store.ts';
export {
  draw,
  type Episode,
  type Fault,
  type FaultKind,
  type Invariant,
  type Shrunk,
  shrink,
  simulate,
  type Violation,
  type WorldOptions,
  type WorldReport,
} from './sim/index.ts';
export { type StepOptions, TestBed, type TestInstance } from './test-bed.ts';
