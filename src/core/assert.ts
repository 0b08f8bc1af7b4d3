import { InternalError } from './errors.ts';

/**
 * Fails loudly where the code is wrong about itself: a state that cannot be reached was reached.
 */
export function assert(condition: boolean, expected: string): asserts condition {
  if (!condition) throw new InternalError({ expected });
}
