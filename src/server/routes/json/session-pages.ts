/**
 * Sessions of both sorts in one list: first those that came from intents, the latest made first, then those that are polled, in order of id. They are kept
 * in different ways, so a cursor says in which of the two parts to go on, and where.
 */

import type { TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { TargetStore } from '../../../fleet/targets/target-store.ts';
import type { Intents, SessionQuery } from '../../../intents/intents.ts';
import { intentSessionJson, pollSessionJson } from './session-json.ts';

export interface PageQuery {
  /** Of sessions from intents; null for all tenants. */
  readonly tenant: string | null;
  /** Polled sessions are of no tenant, and not for those of one. */
  readonly seesPolled: boolean;
  readonly kind?: 'poll' | 'live' | 'vod' | undefined;
  /** Polled sessions are in none of these states. */
  readonly states?: SessionQuery['states'] | undefined;
  readonly cursor?: Place | undefined;
  readonly most: number;
}

export interface Page {
  readonly sessions: readonly object[];
  /** Polled sessions whose record makes no sense; told once, where those that are polled begin. */
  readonly unreadable?: readonly { readonly id: string; readonly why: string }[];
  readonly cursor?: string;
}

/** Where to go on: after a cursor of the store, or after an id. Empty: where that part begins. */
export interface Place {
  readonly part: 'intents' | 'polled';
  readonly after: string;
}

const LETTERS = { intents: 'i', polled: 'p' } as const;
const LONGEST_CURSOR = 1_024;

/** Null for what was never given out. */
export function placeOf(cursor: string): Place | null {
  if (cursor.length > LONGEST_CURSOR || !/^[A-Za-z0-9_-]+$/.test(cursor)) return null;
  const text = Buffer.from(cursor, 'base64url').toString();
  const after = text.slice(1);
  if (text.startsWith(LETTERS.intents)) return { part: 'intents', after };
  return text.startsWith(LETTERS.polled) ? { part: 'polled', after } : null;
}

export async function sessionPage(
  { intents, sessions }: { intents: Intents; sessions: TargetStore },
  query: PageQuery,
): Promise<Page> {
  const { kind, states, most } = query;
  const place = query.cursor ?? { part: 'intents', after: '' };
  const withPolled =
    query.seesPolled && states === undefined && (kind === undefined || kind === 'poll');
  const first =
    place.part === 'intents' && kind !== 'poll'
      ? await intentPage(intents, query, kind, place.after)
      : { sessions: [] };
  if ('cursor' in first || !withPolled) return first;
  const left = most - first.sessions.length;
  if (left === 0) return { ...first, cursor: cursorOf({ part: 'polled', after: '' }) };
  const after = place.part === 'polled' ? place.after : '';
  const second = await polledPage(sessions, after, left);
  return { ...second, sessions: [...first.sessions, ...second.sessions] };
}

async function intentPage(
  intents: Intents,
  { tenant, states, most }: PageQuery,
  kind: 'live' | 'vod' | undefined,
  after: string,
): Promise<Page> {
  const page = await intents.sessions({
    tenant,
    most,
    ...(kind !== undefined && { kind }),
    ...(states !== undefined && { states }),
    ...(after !== '' && { cursor: after }),
  });
  return {
    sessions: page.sessions.map(intentSessionJson),
    ...(page.cursor !== undefined && {
      cursor: cursorOf({ part: 'intents', after: page.cursor }),
    }),
  };
}

async function polledPage(sessions: TargetStore, after: string, most: number): Promise<Page> {
  const found = await sessions.list();
  const rest = found.targets.filter(({ id, kind }) => kind === 'poll' && id > after);
  const page = rest.slice(0, most);
  const { unreadable } = found;
  return {
    sessions: page.map(pollSessionJson),
    ...(after === '' && unreadable.length > 0 && { unreadable: unreadable.slice(0, most) }),
    ...(rest.length > most && { cursor: cursorOf({ part: 'polled', after: lastId(page) }) }),
  };
}

function lastId(page: readonly TargetRecord[]): string {
  return page.at(-1)?.id ?? '';
}

function cursorOf({ part, after }: Place): string {
  return Buffer.from(LETTERS[part] + after).toString('base64url');
}
