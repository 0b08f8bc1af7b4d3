/** `holdfast fence add`, `rm` and `ls`. */
import { systemClock } from '../../../core/clock.ts';
import { checkPrefix } from '../../../store/port/prefix.ts';
import {
  addFence,
  listFences,
  removeFence,
  type TableFence,
  type TableName,
} from '../../../store/postgres/fences.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { readSettings } from '../../settings.ts';
import { printable, table } from '../../ui/text.ts';
import { addressOf } from './store.ts';

export interface FenceFlags extends Pick<TableName, 'schema'> {
  readonly key?: string;
}

export async function add(context: Context, name: string, flags: FenceFlags): Promise<Exit> {
  const { prefix = '' } = await readSettings(context.flags);
  checkPrefix(prefix);
  const options = { table: name, schema: flags.schema, key: flags.key, prefix };
  const now = () => new Date(systemClock.wallMs());
  const { fence, isChanged } = await addFence(await addressOf(context), options, now);
  context.output.result({ ...fence, isChanged }, () => {
    const already = isChanged ? '' : ' already';
    return `Fenced${already}: writes to ${printable(fence.table)} need ${neededBy(fence)}.\n`;
  });
  return EXIT.ok;
}

export async function rm(context: Context, name: string, flags: FenceFlags): Promise<Exit> {
  const removed = await removeFence(await addressOf(context), { table: name, ...flags });
  context.output.result({ removed }, () =>
    removed === null
      ? `${printable(name)} is not fenced.\n`
      : `Removed the fence of ${printable(removed.table)}: any role with the rights may write it.\n`,
  );
  return removed === null ? EXIT.no : EXIT.ok;
}

export async function ls(context: Context): Promise<Exit> {
  const { output } = context;
  const fences = await listFences(await addressOf(context));
  output.result(fences, () => {
    if (fences.length === 0) return 'No table is fenced.\n';
    const rows = fences.map((fence) => [
      printable(fence.table),
      printable(keyText(fence) ?? 'any'),
      fence.since,
      fence.isEnabled ? 'on' : 'disabled',
    ]);
    return output.titled(table([['TABLE', 'KEY', 'SINCE', 'STATE'], ...rows], output.columns));
  });
  return EXIT.ok;
}

function keyText({ key, isPrefix }: TableFence): string | null {
  return key === null ? null : `${key}${isPrefix ? '*' : ''}`;
}

function neededBy(fence: TableFence): string {
  const key = keyText(fence);
  return key === null ? 'a live lease' : `the live lease ${printable(key)}`;
}
