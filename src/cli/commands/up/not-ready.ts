import type { Random } from '../../../core/random.ts';
import { Problem } from '../../../server/http/problem.ts';
import { ANSWER_HEADERS, problemAnswer } from '../../../server/http/problem-answer.ts';

const RETRY_MS = 1_000;
const REQUEST_ID_DIGITS = 16;
const REASON = 'the store has not been reached yet';

/** Answers while there is no store: that this lives, and can not do anything yet. Nothing else, to nobody. */
export function answerNotReady({ random }: { random: Random }): (request: Request) => Response {
  return ({ url }) => {
    const headers = { ...ANSWER_HEADERS, 'X-Request-Id': random.hex(REQUEST_ID_DIGITS) };
    const { pathname } = new URL(url);
    if (pathname === '/healthz') return Response.json({ alive: true }, { headers });
    const problem = pathname === '/readyz' ? notReady() : away();
    const { status, body, headers: more } = problemAnswer(problem, '');
    return new Response(body, { status, headers: { ...headers, ...more } });
  };
}

function notReady(): Problem {
  const detail = `It can not take work now: ${REASON}.`;
  return new Problem('not-ready', { detail, retryAfterMs: RETRY_MS, facts: { reasons: [REASON] } });
}

function away(): Problem {
  const detail = `It can not be done now: ${REASON}. Nothing has happened; ask again.`;
  return new Problem('store-unavailable', { detail, retryAfterMs: RETRY_MS });
}
