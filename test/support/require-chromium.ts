import { requirePrograms, thisMachine } from './require-redis.ts';

/** Vitest calls this once, before the first test of the page. */
export default function setup(): void {
  requirePrograms(thisMachine, ['chromium']);
}
