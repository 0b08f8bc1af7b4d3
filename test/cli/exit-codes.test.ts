import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { EXIT, EXIT_MEANINGS, exitOf, usageError } from '../../src/cli/exit-codes.ts';
import * as errors from '../../src/core/errors.ts';
import { WorkerNameTakenError } from '../../src/worker/errors.ts';

const facts = { store: 's', operation: 'o', why: 'w', afterMs: 1, reply: 'r', advice: 'a' };
const held = { key: 'k', holder: 'h', fence: 1, expiresInMs: 1, waitedMs: 0 };

it.each([
  [usageError('wrong'), 64],
  [new errors.ConfigError({ field: '--ttl', value: 1, rule: 'r' }), 64],
  [new errors.ConfigError({ field: 'KEY', value: 1, rule: 'r' }), 64],
  [new errors.ConfigError({ field: 'store', value: 1, rule: 'r' }), 78],
  [new errors.ConfigError({ field: 'HOLDFAST_QUARANTINE', value: 1, rule: 'r' }), 78],
  [new errors.StoreUnreachableError(facts), 69],
  [new errors.StoreRefusedError(facts), 69],
  [new errors.OutcomeUnknownError(facts), 69],
  [new errors.StoreUnsuitableError({ store: 's', problems: [] }), 78],
  [new errors.LeaseHeldError({ ...held, reason: 'held' }), 75],
  [new errors.StoreQuarantinedError({ key: 'k', expiresInMs: 1, waitedMs: 0 }), 79],
  [new WorkerNameTakenError({ worker: 'w', why: 'it lives' }), 78],
  [new errors.ClosedError({ operation: 'o' }), 70],
  [new TypeError('a bug'), 70],
  ['thrown text', 70],
])('%s ends with %d', (error, code) => {
  expect(exitOf(error)).toBe(code);
});

it('every exit code stands in the help and in docs/cli.md', () => {
  const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  const documented = page.slice(page.indexOf('## Exit codes')).match(/\d+(?=[\d, ]* \|)/g) ?? [];
  for (const code of Object.values(EXIT)) {
    expect(EXIT_MEANINGS.map(([listed]) => listed)).toContain(String(code));
    expect(documented).toContain(String(code));
  }
});
