export { type ConformanceHarness, storeConformance } from './conformance.ts';
export type { ConformanceStore } from './conformance-kit.ts';
export { FakeClock } from './fake-clock.ts';
export { FaultProxy } from './fault-proxy.ts';
export { faultyStore, type StoreFaults } from './faulty-store.ts';
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
