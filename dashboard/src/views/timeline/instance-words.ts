import type { Words } from '../../data/gaps.ts';
import { nameOf } from '../../data/palette.ts';
import { clockTime } from '../../data/words.ts';

/** Instances by their names, moments by the reader's clock. */
export const WORDS: Words = { name: nameOf, time: clockTime };
