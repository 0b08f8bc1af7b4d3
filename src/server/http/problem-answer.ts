import { PROBLEMS, type Problem, type ProblemKind } from './problem.ts';

/** What every answer has, whoever gives it. */
export const ANSWER_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;

/** A problem on its way out, without the headers that every answer has. */
export interface ProblemAnswer {
  readonly status: ProblemKind['status'];
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** `base` is where the server is mounted: the page of each problem is there, too. */
export function problemAnswer({ kind, facts }: Problem, base: string): ProblemAnswer {
  const { status, title } = PROBLEMS[kind];
  const { detail, errors, retryAfterMs } = facts;
  const body = {
    type: `${base}/problems/${kind}`,
    title,
    status,
    detail,
    code: kind.toUpperCase().replaceAll('-', '_'),
    ...(errors !== undefined && { errors }),
    ...facts.facts,
  };
  const headers = {
    'Content-Type': 'application/problem+json',
    ...(retryAfterMs !== undefined && { 'Retry-After': secondsOf(retryAfterMs) }),
    ...facts.headers,
  };
  return { status, body: JSON.stringify(body), headers };
}

/** Whole seconds, rounded up: who comes back too early is refused once more. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1_000)));
}
