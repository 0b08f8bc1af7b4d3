import { expect, it } from 'vitest';
import { plainFacts } from '../../src/telemetry/facts.ts';
import { sentenceOf } from '../../src/telemetry/sentences.ts';

it('W-12 a violation is told with what is known of it, and without what is not', () => {
  const about = { workflow: 'order-7', expectedLease: null, receivedLease: 'a', action: null };
  const lease = { ...about, code: 'LEASE_VIOLATION', actionEpoch: null, currentEpoch: null };
  expect(plainFacts(lease)).toEqual(lease);
  expect(sentenceOf('workflow.violation', plainFacts(lease))).toBe(
    'refused a step of workflow order-7: LEASE_VIOLATION, its lease is a and the workflow’s none',
  );
  const epoch = { ...about, code: 'STALE_EPOCH', action: 'x', actionEpoch: 4, currentEpoch: 5 };
  expect(sentenceOf('workflow.violation', plainFacts(epoch))).toBe(
    'refused action x of workflow order-7: STALE_EPOCH, its epoch is 4 and the workflow’s 5',
  );
});
