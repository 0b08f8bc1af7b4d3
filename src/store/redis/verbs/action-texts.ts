/**
 * Actions and results as scripts keep them: texts of lines. The last line may have line
 * breaks of its own.
 */
import type { HistoryEntry, StoredAction, StoredResult } from '../../port/workflow-store.ts';
import { addedAtMs, fromJson, jsonOrText, type StreamRow } from './work-connection.ts';

/** The first lines, and the rest as it is. */
function linesOf(text: string, count: number): string[] {
  const lines: string[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const to = text.indexOf('\n', from);
    lines.push(text.slice(from, to));
    from = to + 1;
  }
  lines.push(text.slice(from));
  return lines;
}

export function actionOf(id: string, record: string): StoredAction {
  const [epoch = '', leaseId = '', target = '', priority = '', body = ''] = linesOf(record, 4);
  return { id, target, priority: Number(priority), body, leaseId, epoch: Number(epoch) };
}

/** From a list of ids and records. */
export function actionsOf(list: readonly string[]): StoredAction[] {
  return list.flatMap((id, i) => (i % 2 === 0 ? [actionOf(id, list[i + 1] ?? '')] : []));
}

/** From its text with its position in front. */
export function resultOf(key: string, actionId: string, text: string): StoredResult {
  const [position = '', epoch = '', outcome = '', target = '', json = ''] = linesOf(text, 4);
  return {
    position,
    actionId,
    target,
    epoch: Number(epoch),
    outcome: outcome as StoredResult['outcome'],
    value: fromJson(json, key),
    atMs: addedAtMs(position),
  };
}

export function unreadOf(key: string, [id, fields]: StreamRow): StoredResult {
  const [, actionId = '', , text = ''] = fields;
  return resultOf(key, actionId, `${id}\n${text}`);
}

export function historyOf([position, fields]: StreamRow): HistoryEntry {
  const [, epoch = '', , leaseId = '', , kind = '', , a = '', , b = '', , c = ''] = fields;
  return {
    position,
    atMs: addedAtMs(position),
    epoch: Number(epoch),
    leaseId: leaseId || null,
    what:
      kind === 'updated'
        ? { kind, state: jsonOrText(a), ...(b !== '' && { omittedBytes: Number(b) }) }
        : whatOf(kind as Exclude<HistoryEntry['what']['kind'], 'updated'>, a, b, c),
  };
}

function whatOf(
  kind: Exclude<HistoryEntry['what']['kind'], 'updated'>,
  a: string,
  b: string,
  c: string,
): HistoryEntry['what'] {
  switch (kind) {
    case 'claimed':
      return { kind, reemitted: Number(a), dropped: Number(b) };
    case 'settled':
      return { kind, actionId: a, target: b, outcome: c as StoredResult['outcome'] };
    case 'transferred':
      return { kind, successor: a, transferEpoch: Number(b) };
    case 'revoked':
      return { kind, reason: a };
    default:
      return { kind, actionId: a, target: b };
  }
}
