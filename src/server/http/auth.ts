/** Who asks, and whether it may. Answers say what is missing, and nothing of what was sent. */
import { Problem } from './problem.ts';
import { type Caller, type Route, SCOPES, type Scope } from './route.ts';
import { NOBODY, type Tokens } from './tokens.ts';

/** Two headers arrive as one, with a comma and a space between them: that is no token, and so is refused. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
const CHALLENGE = 'Bearer realm="holdfast"';

/** The caller, if its token is known and allows what the route does. */
export function authorize(route: Route, headers: Headers, tokens: Tokens): Caller {
  if (route.access === 'open') return NOBODY;
  const caller = authenticate(headers, tokens);
  if (!includes(caller.scope, route.access)) throw lackingScope(route.access);
  if (caller.tenant !== null && route.tenants === 'no') {
    throw new Problem('forbidden', {
      detail:
        'This is not of one tenant, and the token is. Use a token that is of none in particular.',
    });
  }
  return caller;
}

export function includes(has: Scope, needs: Scope): boolean {
  return SCOPES.indexOf(has) >= SCOPES.indexOf(needs);
}

export function lackingScope(needs: Scope): Problem {
  return new Problem('forbidden', {
    detail: `This needs a token with the scope ${needs}.`,
    facts: { scope: needs },
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${needs}"` },
  });
}

function authenticate(headers: Headers, tokens: Tokens): Caller {
  const header = headers.get('authorization');
  if (header === null) {
    throw new Problem('unauthenticated', {
      detail: 'Send a token in the header Authorization: Bearer …',
      headers: { 'WWW-Authenticate': CHALLENGE },
    });
  }
  const token = BEARER.exec(header)?.[1];
  if (token === undefined)
    throw invalidToken('The header Authorization has to be there once, and read: Bearer TOKEN');
  const recognized = tokens.recognize(token);
  if (recognized.kind === 'known') return recognized.caller;
  throw invalidToken(
    recognized.kind === 'expired' ? 'The token has expired.' : 'The token is not known here.',
  );
}

function invalidToken(detail: string): Problem {
  const headers = { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` };
  return new Problem('unauthenticated', { detail, headers });
}
