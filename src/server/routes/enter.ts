/** The way into the page from an address that was printed: a pass, exchanged once for the token that was made at the start. */
import { z } from 'zod';
import type { EntryPasses } from '../http/entry-passes.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';

const PASS_RULE = 'it is what stands after pass= in the address';

const enterBody = z
  .strictObject({ pass: z.string().regex(/^[A-Za-z0-9]{1,64}$/, { error: PASS_RULE }) })
  .meta({ id: 'Enter' });

const enteredSchema = z.object({ token: z.string() }).meta({ id: 'Entered' });

/** Without passes, because tokens are configured, every pass is a wrong one. */
export function enterRoute(passes: EntryPasses | null): Route {
  return route({
    method: 'POST',
    path: '/api/v3/enter',
    access: 'open',
    tenants: 'yes',
    group: 'operation',
    isPage: true,
    summary: 'Exchange a pass for a token',
    description:
      'For the page: where no token is configured, the address that is printed at the start has a pass, which is good once, for ten minutes.',
    body: enterBody,
    answers: { 200: { description: 'The token that was made.', body: enteredSchema } },
    problems: ['unauthenticated', 'too-many-requests'],
    async handle({ body: { pass } }) {
      const token = passes?.redeem(pass) ?? null;
      if (token === null) throw wrongPass();
      return { body: { token } };
    },
  });
}

function wrongPass(): Problem {
  return new Problem('unauthenticated', {
    detail:
      'The pass has been used, is over, or is not of this server. Use the token that was printed with it.',
  });
}
