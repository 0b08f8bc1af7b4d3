import { describe, expect, it } from 'vitest';
import * as errors from '../../src/core/errors.ts';
import { MemberNotFoundError } from '../../src/fleet/errors.ts';
import {
  SessionExistsError,
  SessionNotFoundError,
  SessionUnreadableError,
} from '../../src/fleet/targets/errors.ts';
import { SessionCrowdedError } from '../../src/intents/errors.ts';
import { problemFor } from '../../src/server/http/error-mapping.ts';
import { PROBLEMS, Problem, problemResponse } from '../../src/server/http/problem.ts';

const STORE = { store: 'redis://:canary@host', operation: 'canary', why: 'canary' };
const HELD = { key: 'canary', holder: 'canary', fence: 1, reason: 'held', waitedMs: 0 } as const;

describe('an error of the core', () => {
  it.each([
    [new errors.ConfigError({ field: 'a', value: 'canary', rule: 'b' }), 'invalid-request', null],
    [new SessionNotFoundError({ session: 'canary' }), 'not-found', null],
    [new MemberNotFoundError({ member: 'canary' }), 'not-found', null],
    [new SessionExistsError({ session: 'canary' }), 'session-exists', null],
    [
      new errors.RevisionConflictError({ resource: 'canary', expected: 1, found: 2 }),
      'conflict',
      null,
    ],
    [new SessionUnreadableError({ session: 'canary', why: 'b' }), 'conflict', null],
    [new errors.KeyForeignError({ key: 'canary', found: 'canary' }), 'conflict', null],
    [
      new errors.StoreRefusedError({ ...STORE, reply: 'WRONGTYPE canary', advice: 'canary' }),
      'conflict',
      null,
    ],
    [new errors.LeaseHeldError({ ...HELD, expiresInMs: 2_001 }), 'lease-busy', '3'],
    [new errors.LeaseHeldError({ ...HELD, expiresInMs: 0 }), 'lease-busy', '1'],
    [
      new errors.LeaseHeldError({ ...HELD, expiresInMs: Number.POSITIVE_INFINITY }),
      'lease-busy',
      '30',
    ],
    [
      new errors.StoreQuarantinedError({ key: 'canary', expiresInMs: 300_001, waitedMs: 0 }),
      'store-quarantined',
      '301',
    ],
    [new SessionCrowdedError({ session: 'canary', clients: 10_000 }), 'session-crowded', '1'],
    [new errors.StoreUnreachableError(STORE), 'store-unavailable', '1'],
    [
      new errors.StoreRefusedError({ ...STORE, reply: 'canary', advice: 'canary' }),
      'store-unavailable',
      '1',
    ],
    [new errors.OverloadedError({ limit: 5 }), 'store-unavailable', '1'],
    [new errors.ClosedError({ operation: 'canary' }), 'store-unavailable', '1'],
    [new errors.OutcomeUnknownError({ ...STORE, afterMs: 5 }), 'outcome-unknown', '1'],
  ])('%s is the problem %s', (error, kind, retryAfter) => {
    const problem = problemFor(error);
    expect(problem?.kind).toBe(kind);
    const answer = problemResponse(problem as Problem, '');
    expect(answer.headers['Retry-After'] ?? null).toBe(retryAfter);
    expect(answer.body).not.toContain('canary');
  });

  it('that is not known here is none', () => {
    const unknown = [new Error('a'), 'a', undefined];
    expect(unknown.map(problemFor)).toEqual(unknown.map(() => null));
  });
});

describe('a problem', () => {
  it('I-02 is told as RFC 9457 has it', () => {
    const problem = new Problem('lease-busy', {
      detail: 'why',
      retryAfterMs: 1_001,
      errors: [{ field: 'a', rule: 'b' }],
      facts: { more: 1 },
      headers: { Allow: 'GET' },
    });
    const { status, headers, body } = problemResponse(problem, '/mounted');
    expect(status).toBe(409);
    expect(headers).toEqual({
      'Content-Type': 'application/problem+json',
      'Retry-After': '2',
      Allow: 'GET',
    });
    expect(JSON.parse(body)).toEqual({
      type: '/mounted/problems/lease-busy',
      title: PROBLEMS['lease-busy'].title,
      status: 409,
      detail: 'why',
      code: 'LEASE_BUSY',
      errors: [{ field: 'a', rule: 'b' }],
      more: 1,
    });
  });
});
