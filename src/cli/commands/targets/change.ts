/** `holdfast targets change`. */

import { ConfigError } from '../../../core/errors.ts';
import { checkTargetId } from '../../../core/ids.ts';
import type { TargetChange } from '../../../fleet/targets/target-store.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { printable } from '../../ui/text.ts';
import { type AddFlags, checkedFields } from './add.ts';

export interface ChangeFlags extends Pick<AddFlags, 'every' | 'timeout' | 'command' | 'data'> {
  readonly url?: string;
  readonly clear?: string;
}

const CLEARABLE = ['url', 'every', 'timeout', 'command', 'data'] as const;

export async function changeFields(
  { flags, output }: Context,
  id: string,
  { clear, url, ...given }: ChangeFlags,
): Promise<Exit> {
  checkTargetId(id, 'ID');
  const fields = checkedFields(url, given);
  const cleared = clear === undefined ? [] : readClear(clear, Object.keys(fields));
  const names = [...Object.keys(fields), ...cleared];
  if (names.length === 0)
    throw usageError(
      'targets change needs a field: --url, --every, --timeout, --command, --data or --clear.',
    );
  const change: TargetChange = {
    ...fields,
    ...Object.fromEntries(cleared.map((name) => [name, null])),
  };
  const { target, changed } = await withHoldfast(
    flags,
    async (holdfast) => {
      if (typeof change.command === 'string')
        await holdfast.fleet.checkCommand(change.command, '--command');
      const result = await holdfast.targets.update(id, change);
      if (result.changed) audit(holdfast, { action: 'session.change', subject: id });
      return result;
    },
    { history: 'on' },
  );
  output.result({ id, changed, target }, () =>
    printable(`Changed ${names.join(', ')} of ${id}.`).concat('\n'),
  );
  return EXIT.ok;
}

function readClear(text: string, given: readonly string[]): string[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !CLEARABLE.some((field) => field === name));
  if (unknown !== undefined) {
    const rule = `it must be one or more of ${CLEARABLE.join(', ')}, separated by commas`;
    throw new ConfigError({ field: '--clear', value: unknown, rule });
  }
  const both = names.find((name) => given.includes(name));
  if (both !== undefined)
    throw usageError(`--clear ${both} cannot be combined with --${both}: give one of them.`);
  return names;
}
