/** Commands about hashes and sets. In both, the order is that in which things came. */

import { ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Command, CommandContext } from './command.ts';
import type { Value } from './value.ts';

function hset({ database }: CommandContext, args: readonly string[]): Value {
  const [name = '', key = ''] = args;
  if (args.length % 2 !== 0)
    throw new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
  const hash = database.open('hash', key, () => new Map());
  let added = 0;
  for (let i = 2; i < args.length; i += 2) {
    const [field = '', text = ''] = [args[i], args[i + 1]];
    const old = hash.get(field);
    hash.set(field, text);
    if (old === undefined) added++;
    database.journal.note(() => {
      if (old === undefined) hash.delete(field);
      else hash.set(field, old);
    });
  }
  return added;
}

function hsetnx(context: CommandContext, args: readonly string[]): Value {
  const [, key = '', field = ''] = args;
  if (context.database.read('hash', key)?.has(field)) return 0;
  return hset(context, args);
}

function hdel({ database }: CommandContext, [, key = '', ...fields]: readonly string[]): Value {
  const hash = database.read('hash', key);
  let removed = 0;
  for (const field of fields) {
    const old = hash?.get(field);
    if (hash === undefined || old === undefined) continue;
    hash.delete(field);
    database.journal.note(() => hash.set(field, old));
    removed++;
  }
  if (hash?.size === 0) database.remove(key);
  return removed;
}

function hmget({ database }: CommandContext, args: readonly string[]): Value {
  const hash = database.read('hash', args[1] ?? '');
  const found: Value[] = [];
  for (let i = 2; i < args.length; i++) found.push(hash?.get(args[i] ?? '') ?? null);
  return found;
}

function sadd({ database }: CommandContext, [, key = '', ...members]: readonly string[]): Value {
  const set = database.open('set', key, () => new Set());
  let added = 0;
  for (const member of members) {
    if (set.has(member)) continue;
    set.add(member);
    database.journal.note(() => set.delete(member));
    added++;
  }
  return added;
}

function srem({ database }: CommandContext, [, key = '', ...members]: readonly string[]): Value {
  const set = database.read('set', key);
  let removed = 0;
  for (const member of members) {
    if (!set?.delete(member)) continue;
    database.journal.note(() => set.add(member));
    removed++;
  }
  if (set?.size === 0) database.remove(key);
  return removed;
}

export const COLLECTION_COMMANDS: Readonly<Record<string, Command>> = {
  HSET: { arity: -4, writes: 'grow', run: hset },
  HSETNX: { arity: 4, writes: 'grow', run: hsetnx },
  HDEL: { arity: -3, writes: 'shrink', run: hdel },
  HGET: {
    arity: 3,
    run: ({ database }, [, key = '', field = '']) => database.read('hash', key)?.get(field) ?? null,
  },
  HMGET: { arity: -3, run: hmget },
  HGETALL: {
    arity: 2,
    run: ({ database }, [, key = '']) => [...(database.read('hash', key) ?? [])].flat(),
  },
  HKEYS: {
    arity: 2,
    run: ({ database }, [, key = '']) => [...(database.read('hash', key)?.keys() ?? [])],
  },
  HVALS: {
    arity: 2,
    run: ({ database }, [, key = '']) => [...(database.read('hash', key)?.values() ?? [])],
  },
  HLEN: { arity: 2, run: ({ database }, [, key = '']) => database.read('hash', key)?.size ?? 0 },
  SADD: { arity: -3, writes: 'grow', run: sadd },
  SREM: { arity: -3, writes: 'shrink', run: srem },
  SCARD: { arity: 2, run: ({ database }, [, key = '']) => database.read('set', key)?.size ?? 0 },
  SMEMBERS: {
    arity: 2,
    run: ({ database }, [, key = '']) => [...(database.read('set', key) ?? [])],
  },
};
