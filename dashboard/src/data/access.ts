/**
 * Who looks at the page. A token is kept for this tab, or, if somebody says so, on this device; it goes into a header and never into an
 * address. `holdfast up` prints an address with a pass behind the `#`, which no server gets to see: it is good once, and becomes a token here.
 */
import { computed, signal } from '@preact/signals';
import { HoldfastApiError, OperatorClient } from '../../../src/client/index.ts';
import type { About } from '../../../src/client/operating-messages.ts';

const KEPT = 'holdfast.token';

export type Access =
  | { readonly kind: 'entering' }
  /** Nobody is known yet; `why` after an attempt. */
  | { readonly kind: 'out'; readonly why: string | null }
  | { readonly kind: 'in'; readonly about: About };

export const access = signal<Access>({ kind: 'entering' });

/** What is shown beside the instance's name: null until it is known. */
export const about = computed(() => (access.value.kind === 'in' ? access.value.about : null));

let token = '';

/** Where the server is: wherever these files came from. */
const base = new URL('.', location.href.split('#')[0]).href.replace(/\/$/, '');

export const client = new OperatorClient({ url: base, token: () => token, timeout: '15s' });

/** Whether the token may do that; the page shows what it may not, but does not offer it. */
export function may(scope: About['scope']): boolean {
  const order: readonly About['scope'][] = ['v3:read', 'v3:write', 'v3:admin'];
  const has = about.value?.scope;
  return has !== undefined && order.indexOf(has) >= order.indexOf(scope);
}

/** Begins with what is known: a pass in the address, a token that was kept. */
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
      : 'The address you came by was used before. Paste the token that the terminal shows.';
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
    const why = isRefused ? 'This token is not known here, or has expired.' : messageOf(error);
    access.value = { kind: 'out', why };
  }
}

export function signOut(): void {
  forget();
  access.value = { kind: 'out', why: null };
}

/** The server does not know the token any more: it was restarted with another, or it has expired. */
export function refused(): void {
  forget();
  access.value = { kind: 'out', why: 'The server does not accept the token any more.' };
}

function forget(): void {
  token = '';
  sessionStorage.removeItem(KEPT);
  localStorage.removeItem(KEPT);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
