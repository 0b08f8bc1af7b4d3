/** Authentication by bearer token, and authorization by scope and tenant. */
import { DEFAULT_TENANT } from '../../intents/intent.ts';
import { Problem } from './problem.ts';
import { type Caller, type Route, SCOPES, type Scope } from './route.ts';
import { ANONYMOUS, type TokenSet } from './token-set.ts';

/** Two Authorization headers arrive as one with a comma and a space: no token, so refused. */
const BEARER = /^bearer +([\x21-\x7e]+)$/i;
const CHALLENGE = 'Bearer realm="holdfast"';

/** The caller, if its token is valid and allows the route. */
export function authorize(route: Route, headers: Pick<Headers, 'get'>, tokens: TokenSet): Caller {
  if (route.access === 'open') return ANONYMOUS;
  const caller = authenticate(headers, tokens);
  if (!includes(caller.scope, route.access)) throw missingScope(route.access);
  if (caller.tenant !== null && route.tenants === 'no') {
    throw new Problem('forbidden', {
      detail:
        'This route is not limited to one tenant, and the token belongs to a tenant. Use a token without a tenant.',
    });
  }
  return caller;
}

export function includes(has: Scope, needs: Scope): boolean {
  return SCOPES.indexOf(has) >= SCOPES.indexOf(needs);
}

export function missingScope(needs: Scope): Problem {
  return new Problem('forbidden', {
    detail: `This needs a token with the scope ${needs}.`,
    facts: { scope: needs },
    headers: { 'WWW-Authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${needs}"` },
  });
}

/**
 * The tenant whose sessions a caller may see; null: the sessions of all tenants. A token without a
 * tenant sees all with the scope v3:admin, else only sessions that name no tenant.
 */
export function visibleTenant({ tenant, scope }: Caller): string | null {
  return tenant ?? (includes(scope, 'v3:admin') ? null : DEFAULT_TENANT);
}

function authenticate(headers: Pick<Headers, 'get'>, tokens: TokenSet): Caller {
  const header = headers.get('authorization');
  if (header === null) {
    throw new Problem('unauthenticated', {
      detail: 'Send a token in the header Authorization: Bearer …',
      headers: { 'WWW-Authenticate': CHALLENGE },
    });
  }
  const token = BEARER.exec(header)?.[1];
  if (token === undefined)
    throw invalidToken('Send the header Authorization once, in the form: Bearer TOKEN');
  const recognized = tokens.recognize(token);
  if (recognized.kind === 'known') return recognized.caller;
  throw invalidToken(
    recognized.kind === 'expired'
      ? 'The token has expired.'
      : 'The token is not configured on this server.',
  );
}

function invalidToken(detail: string): Problem {
  const headers = { 'WWW-Authenticate': `${CHALLENGE}, error="invalid_token"` };
  return new Problem('unauthenticated', { detail, headers });
}
