/** Exchanges the one-time pass of a printed address for the token that the server made. */
import { z } from 'zod';
import type { EntryPasses } from '../http/entry-passes.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';

const PASS_RULE = 'must be the text after pass= in the printed address';

const enterBody = z
  .strictObject({ pass: z.string().regex(/^[A-Za-z0-9]{1,64}$/, { error: PASS_RULE }) })
  .meta({ id: 'Enter' });

const enteredSchema = z.object({ token: z.string() }).meta({ id: 'Entered' });

/** `passes` is null where tokens are configured: then every pass is wrong. */
export function enterRoutes(passes: EntryPasses | null): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/v3/enter',
      access: 'open',
      tenants: 'yes',
      group: 'operation',
      isPage: true,
      summary: 'Exchange a pass for a token',
      description:
        'For the page. Without configured tokens, the address that the server prints at its start has a pass. It works once, within ten minutes.',
      body: enterBody,
      responses: { 200: { description: 'The token that the server made.', body: enteredSchema } },
      problems: ['unauthenticated', 'too-many-requests'],
      async handle({ body: { pass } }) {
        const token = passes?.redeem(pass) ?? null;
        if (token === null) throw wrongPass();
        return { body: { token } };
      },
    }),
  ];
}

function wrongPass(): Problem {
  return new Problem('unauthenticated', {
    detail:
      'The pass was used, has expired, or belongs to another server. Use the token that was printed with it.',
  });
}
