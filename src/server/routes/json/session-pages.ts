/**
 * Pages of sessions and of targets. The list of sessions has two parts: sessions of intents, the
 * latest first, then targets in order of id. The store keeps the two in different ways, so a cursor
 * says in which part to continue, and where.
 */
import type { TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { TargetStore } from '../../../fleet/targets/target-store.ts';
import type { Intents, SessionQuery } from '../../../intents/intents.ts';
import { intentSessionJson, pollSessionJson } from './session-json.ts';

export interface PageQuery {
  /** The tenant whose sessions are listed; null for all tenants. */
  readonly tenant: string | null;
  /** Targets belong to no tenant, and tokens of a tenant do not see them. */
  readonly seesTargets: boolean;
  /** `poll`: targets. */
  readonly kind?: string | undefined;
  readonly key?: string | undefined;
  /** Targets have none of these states. */
  readonly states?: SessionQuery['states'] | undefined;
  readonly cursor?: Cursor | undefined;
  readonly limit: number;
}

export interface SessionPage {
  readonly sessions: readonly object[];
  readonly unreadable?: TargetPage['unreadable'];
  readonly cursor?: string | undefined;
  /** Whether targets are on the page, or could be on a later one. */
  readonly hasTargets: boolean;
}

export interface TargetPage {
  readonly targets: readonly TargetRecord[];
  /** Records that are not valid targets; only on the first page. */
  readonly unreadable: readonly { readonly id: string; readonly why: string }[] | undefined;
  readonly cursor: string | undefined;
}

/** `after` is a cursor of the store, or the id of a target; empty at the beginning of the part. */
export interface Cursor {
  readonly part: 'intents' | 'targets';
  readonly after: string;
}

const LETTERS = { intents: 'i', targets: 'p' } as const;
const MAX_CURSOR_LENGTH = 1_024;

/** Null for text that is not a cursor. */
export function parseCursor(cursor: string): Cursor | null {
  if (cursor.length > MAX_CURSOR_LENGTH || !/^[A-Za-z0-9_-]+$/.test(cursor)) return null;
  const text = Buffer.from(cursor, 'base64url').toString();
  const after = text.slice(1);
  if (text.startsWith(LETTERS.intents)) return { part: 'intents', after };
  return text.startsWith(LETTERS.targets) ? { part: 'targets', after } : null;
}

export async function sessionPage(
  intents: Intents,
  targets: TargetStore,
  query: PageQuery,
): Promise<SessionPage> {
  const { kind, states, limit, cursor } = query;
  const hasTargets =
    query.seesTargets && states === undefined && (kind === undefined || kind === 'poll');
  const first =
    cursor?.part === 'targets' || kind === 'poll'
      ? { sessions: [], cursor: undefined }
      : await intentPage(intents, query, cursor?.after ?? '');
  if (first.cursor !== undefined || !hasTargets) return { ...first, hasTargets };
  const left = limit - first.sessions.length;
  if (left === 0)
    return { ...first, cursor: cursorText({ part: 'targets', after: '' }), hasTargets };
  const after = cursor?.part === 'targets' ? cursor.after : '';
  const second = await targetPage(targets, after, left);
  return {
    sessions: [...first.sessions, ...second.targets.map(pollSessionJson)],
    unreadable: second.unreadable,
    cursor: second.cursor,
    hasTargets,
  };
}

/** Targets after an id, in order of id. */
export async function targetPage(
  store: TargetStore,
  after: string,
  limit: number,
): Promise<TargetPage> {
  const { targets, unreadable } = await store.list();
  const rest = targets.filter(({ id, kind }) => kind === 'poll' && id > after);
  const page = rest.slice(0, limit);
  const last = page.at(-1)?.id ?? '';
  const isFirst = after === '';
  return {
    targets: page,
    unreadable: isFirst && unreadable.length > 0 ? unreadable.slice(0, limit) : undefined,
    cursor: rest.length > limit ? cursorText({ part: 'targets', after: last }) : undefined,
  };
}

async function intentPage(
  intents: Intents,
  { tenant, kind, key, states, limit }: PageQuery,
  after: string,
): Promise<{ sessions: readonly object[]; cursor: string | undefined }> {
  const page = await intents.sessions({
    tenant,
    most: limit,
    kind,
    key,
    states,
    cursor: after === '' ? undefined : after,
  });
  const cursor =
    page.cursor === undefined ? undefined : cursorText({ part: 'intents', after: page.cursor });
  return { sessions: page.sessions.map(intentSessionJson), cursor };
}

function cursorText({ part, after }: Cursor): string {
  return Buffer.from(LETTERS[part] + after).toString('base64url');
}
