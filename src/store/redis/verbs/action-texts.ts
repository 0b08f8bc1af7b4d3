/**
 * Actions and results as scripts keep them: texts of lines. The last line may have line
 * breaks of its own.
 */
import type { RunPhase, StepKind } from '../../port/run-store.ts';
import type { HistoryEntry, StoredAction, StoredResult } from '../../port/workflow-store.ts';
import { addedAtMs, fromJson, jsonOrText, type StreamRow } from './work-connection.ts';

/** The kind of an entry of the history that came from another store: it has all of it as JSON. */
export const COPIED = 'copied';

/** The first lines, and the rest as it is. */
export function linesOf(text: string, count: number): string[] {
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
  const [, epoch = '', , leaseId = '', , kind = '', , a = '', , b = '', , c = '', , d = ''] =
    fields;
  return {
    position,
    atMs: addedAtMs(position),
    epoch: Number(epoch),
    leaseId: leaseId || null,
    what:
      kind === COPIED
        ? (jsonOrText(d) as HistoryEntry['what'])
        : kind === 'updated'
          ? { kind, state: jsonOrText(a), ...(b !== '' && { omittedBytes: Number(b) }) }
          : whatOf(kind as Exclude<HistoryEntry['what']['kind'], 'updated'>, [a, b, c, d]),
  };
}

function whatOf(
  kind: Exclude<HistoryEntry['what']['kind'], 'updated'>,
  [a, b, c, d]: readonly [a: string, b: string, c: string, d: string],
): HistoryEntry['what'] {
  switch (kind) {
    case 'claimed':
      return { kind, reemitted: Number(a), dropped: Number(b) };
    case 'emitted': {
      const [, bytes, type] = /^(\d+) (.*)$/.exec(c) ?? [];
      const about = type === undefined ? {} : { type, payloadBytes: Number(bytes) };
      return { kind, actionId: a, target: b, ...about };
    }
    case 'retried':
      return { kind, actionId: a, target: b, tries: Number(c), error: d };
    case 'settled': {
      const [, tries, error] = /^(\d+) ([\s\S]*)$/.exec(d) ?? [];
      const failure = error === undefined ? {} : { tries: Number(tries), error };
      return {
        kind,
        actionId: a,
        target: b,
        outcome: c as StoredResult['outcome'],
        ...failure,
      };
    }
    case 'started':
      return { kind, function: a };
    case 'kept':
      return { kind, name: a, step: b as StepKind, isDone: c === '1' };
    case 'signalled':
      return { kind, name: a };
    case 'paused':
      return { kind, phase: a as RunPhase, detail: b };
    case 'restarted':
      return { kind };
    case 'transferred':
      return { kind, successor: a, transferEpoch: Number(b) };
    case 'revoked':
      return { kind, reason: a };
    default:
      return { kind, actionId: a, target: b };
  }
}
