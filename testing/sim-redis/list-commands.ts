/** Commands about lists. One that is empty is gone. */
import type { Command, CommandContext } from './command.ts';
import { NotSimulatedError } from './lua-value.ts';
import { readInteger, type Value } from './value.ts';

function rpush({ database }: CommandContext, [, key = '', ...texts]: readonly string[]): Value {
  const list = database.open('list', key, () => []);
  list.push(...texts);
  database.journal.note(() => list.splice(list.length - texts.length));
  return list.length;
}

function lpop({ database }: CommandContext, args: readonly string[]): Value {
  const key = args[1] ?? '';
  if (args.length > 2) throw new NotSimulatedError('LPOP of several');
  const list = database.read('list', key);
  const text = list?.shift();
  if (list === undefined || text === undefined) return null;
  database.journal.note(() => list.unshift(text));
  if (list.length === 0) database.remove(key);
  return text;
}

function lindex({ database }: CommandContext, args: readonly string[]): Value {
  const list = database.read('list', args[1] ?? '');
  if (list === undefined) return null;
  return list.at(readInteger(args[2])) ?? null;
}

function lrange({ database }: CommandContext, args: readonly string[]): Value {
  const [first, last] = [readInteger(args[2]), readInteger(args[3])];
  const list = database.read('list', args[1] ?? '') ?? [];
  const from = Math.max(0, first < 0 ? list.length + first : first);
  const to = last < 0 ? list.length + last : last;
  return list.slice(from, Math.max(from, to + 1));
}

/** The first of them, from the front. */
function lrem({ database }: CommandContext, args: readonly string[]): Value {
  const [, key = '', count, text = ''] = args;
  if (readInteger(count) !== 1) throw new NotSimulatedError(`LREM of ${count}`);
  const list = database.read('list', key);
  const place = list?.indexOf(text) ?? -1;
  if (list === undefined || place < 0) return 0;
  list.splice(place, 1);
  database.journal.note(() => list.splice(place, 0, text));
  if (list.length === 0) database.remove(key);
  return 1;
}

export const LIST_COMMANDS: Readonly<Record<string, Command>> = {
  RPUSH: { arity: -3, writes: 'grow', run: rpush },
  LPOP: { arity: -2, writes: 'shrink', run: lpop },
  LREM: { arity: 4, writes: 'shrink', run: lrem },
  LINDEX: { arity: 3, run: lindex },
  LRANGE: { arity: 4, run: lrange },
};
