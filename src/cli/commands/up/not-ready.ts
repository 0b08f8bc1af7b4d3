import type { Random } from '../../../core/random.ts';
import { COMMON_HEADERS, Problem, problemResponse } from '../../../server/http/problem.ts';

const RETRY_MS = 1_000;
const REQUEST_ID_DIGITS = 16;
const REASON = 'it has not connected to the store yet';

/** Answers requests before the store is open: the process is alive, but not ready. */
export function answerNotReady({ random }: { random: Random }): (request: Request) => Response {
  return ({ url }) => {
    const headers = { ...COMMON_HEADERS, 'X-Request-Id': random.hex(REQUEST_ID_DIGITS) };
    const { pathname } = new URL(url);
    if (pathname === '/healthz') return Response.json({ alive: true }, { headers });
    const problem = pathname === '/readyz' ? notReady() : away();
    const { status, body, headers: more } = problemResponse(problem, '');
    return new Response(body, { status, headers: { ...headers, ...more } });
  };
}

function notReady(): Problem {
  const detail = `This instance is not ready: ${REASON}.`;
  return new Problem('not-ready', { detail, retryAfterMs: RETRY_MS, facts: { reasons: [REASON] } });
}

function away(): Problem {
  const detail = `This instance is not ready: ${REASON}. Nothing was done; try again.`;
  return new Problem('store-unavailable', { detail, retryAfterMs: RETRY_MS });
}
