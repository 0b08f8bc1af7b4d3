/**
 * Who is signed in. The browser keeps the token for this tab, or on this device if the user wants that. The token travels in a header, never in
 * an address. `holdfast up` prints an address with a pass behind the `#`, which browsers do not send; the dashboard exchanges the pass for a
 * token, once.
 */
import { computed, signal } from '@preact/signals';
import { HoldfastApiError, OperatorClient } from '../../../src/client/index.ts';
import type { About } from '../../../src/client/operating-messages.ts';

const KEPT = 'holdfast.token';

export type Access =
  | { readonly kind: 'entering' }
  /** Not signed in; `why` says what failed. */
  | { readonly kind: 'out'; readonly why: string | null }
  | { readonly kind: 'in'; readonly about: About };

export const access = signal<Access>({ kind: 'entering' });

/** What the server says of itself and of the token; null until then. */
export const about = computed(() => (access.value.kind === 'in' ? access.value.about : null));

let token = '';

/** The server that these files came from. */
const base = new URL('.', location.href.split('#')[0]).href.replace(/\/$/, '');

export const client = new OperatorClient({ url: base, token: () => token, timeout: '15s' });

/** Whether the token allows it. Buttons for the rest are disabled. */
export function may(scope: About['scope']): boolean {
  const order: readonly About['scope'][] = ['v3:read', 'v3:write', 'v3:admin'];
  const has = about.value?.scope;
  return has !== undefined && order.indexOf(has) >= order.indexOf(scope);
}

/** Signs in with the pass in the address, or with a token that was kept. */
export async function enter(): Promise<void> {
  const pass = /^#pass=([A-Za-z0-9]+)$/.exec(location.hash)?.[1];
  if (pass !== undefined) {
    history.replaceState(null, '', '#/');
    dispatchEvent(new HashChangeEvent('hashchange'));
    const given = await client.enter(pass).catch(() => null);
    if (given !== null) return signIn(given.token, false);
  }
  const kept = sessionStorage.getItem(KEPT) ?? localStorage.getItem(KEPT);
  if (kept !== null) return signIn(kept, localStorage.getItem(KEPT) !== null);
  const why =
    pass === undefined
      ? null
      : 'The pass in this address was used before, or has expired. Paste the token that the terminal shows.';
  access.value = { kind: 'out', why };
}

export async function signIn(given: string, remember: boolean): Promise<void> {
  token = given.trim();
  try {
    const found = await client.about();
    sessionStorage.setItem(KEPT, token);
    if (remember) localStorage.setItem(KEPT, token);
    access.value = { kind: 'in', about: found };
  } catch (error) {
    const isRefused = error instanceof HoldfastApiError && error.status === 401;
    if (isRefused) forget();
    const why = isRefused
      ? 'The server does not know this token, or the token has expired.'
      : messageOf(error);
    access.value = { kind: 'out', why };
  }
}

export function signOut(): void {
  forget();
  access.value = { kind: 'out', why: null };
}

/** The server no longer accepts the token: the server was restarted with another one, or the token has expired. */
export function refused(): void {
  forget();
  access.value = { kind: 'out', why: 'The server no longer accepts your token. Sign in again.' };
}

function forget(): void {
  token = '';
  sessionStorage.removeItem(KEPT);
  localStorage.removeItem(KEPT);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
