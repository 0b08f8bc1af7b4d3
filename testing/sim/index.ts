export type { Invariant, Violation } from './audit.ts';
export { INTERESTING_STATES, MIXED_STATES } from './counters.ts';
export { draw } from './drawing.ts';
export type { Episode, Fault, FaultKind } from './faults.ts';
export { type Finding, type Regression, tell, withFound } from './findings.ts';
export { KEEPALIVE_STATES } from './keepalive-world.ts';
export { PAIR, pairCoverage } from './pairs.ts';
export { type Shrunk, shrink } from './shrink.ts';
export { simulateWorld as simulate, type WorldOptions, type WorldReport } from './world.ts';
