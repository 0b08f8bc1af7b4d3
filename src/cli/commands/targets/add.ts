import { readFileSync } from 'node:fs';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { checkTargetId } from '../../../core/ids.ts';
import { SessionExistsError } from '../../../fleet/targets/errors.ts';
import { InvalidRecord, readTargetRecord } from '../../../fleet/targets/target-record.ts';
import type { AddTargetResult, NewTarget } from '../../../fleet/targets/target-store.ts';
import { urlProblem } from '../../../fleet/targets/target-url.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { readJsonObject } from '../../json-argument.ts';
import { withHoldfast } from '../../opening.ts';
import { counted, printable } from '../../ui/text.ts';

export interface AddFlags {
  readonly id?: string;
  readonly every?: Duration;
  readonly timeout?: Duration;
  readonly command?: string;
  readonly data?: string;
  readonly paused?: boolean;
  readonly file?: string;
}

/** A line names at most this many ids. */
const MAX_NAMED = 5;

/** `holdfast targets add`. */
export async function addTargets(
  { flags, output }: Context,
  urls: readonly string[],
  given: AddFlags,
): Promise<Exit> {
  const targets = given.file === undefined ? named(urls, given) : fromFile(given.file, urls, given);
  const results = await withHoldfast(
    flags,
    async (holdfast) => {
      const commands = new Set(targets.flatMap(({ command }) => command ?? []));
      const field = given.file === undefined ? '--command' : 'command';
      for (const command of commands) await holdfast.fleet.checkCommand(command, field);
      const results = await holdfast.targets.addAll(targets);
      const added = results.flatMap((result) => (result.ok ? [result.target.id] : []));
      const [first] = added;
      // The log has an event for each target already.
      const subject = added.length === 1 ? first : counted(added.length, 'target');
      if (subject !== undefined && first !== undefined)
        audit(holdfast, { action: 'session.add', subject });
      return results;
    },
    { history: 'on', create: true },
  );
  const failed = results.find(({ ok }) => !ok) as
    | Extract<AddTargetResult, { ok: false }>
    | undefined;
  const isSure = results.every((result) => result.ok || result.error instanceof SessionExistsError);
  // A single target that exists is an error. Many can be added again: existing ones do not change.
  if (failed !== undefined && (!isSure || results.length === 1)) throw failed.error;
  const added = results.flatMap((result) => (result.ok ? [result.target.id] : []));
  const existing = results.flatMap((result) => (result.ok ? [] : [result.id]));
  output.result({ added, existing }, () => {
    const rest = existing.length > 0 ? `; ${listed(existing)} existed already` : '';
    const some = added.length === 1 ? added[0] : counted(added.length, 'target');
    return printable(`Added ${added.length === 0 ? 'nothing' : some}${rest}.`).concat('\n');
  });
  return EXIT.ok;
}

function listed(ids: readonly string[]): string {
  if (ids.length > MAX_NAMED) return `${ids.length}`;
  return ids.join(', ');
}

function named(urls: readonly string[], { id, paused, data, ...flags }: AddFlags): NewTarget[] {
  const { command } = flags;
  if (urls.length === 0 && command === undefined)
    throw usageError(
      'targets add needs a URL or a command: holdfast targets add URL, or --command NAME. For many, use --file.',
    );
  if (id !== undefined && urls.length > 1)
    throw usageError('--id names one target: give one URL, or use --file for many targets.');
  if (id !== undefined) checkTargetId(id, '--id');
  const addresses = urls.length === 0 ? [undefined] : urls;
  return addresses.map((url) => ({
    ...(id !== undefined && { id }),
    ...checkedFields(url, { ...flags, ...(data !== undefined && { data }) }, 'URL'),
    ...(paused === true && { isPaused: true }),
  }));
}

/** The fields that the flags give, once they fit their rules. `urlName`: where the URL stands. */
export function checkedFields(
  url: string | undefined,
  { data, ...flags }: FieldFlags & Pick<AddFlags, 'data'>,
  urlName = '--url',
): Record<string, unknown> {
  const fields = {
    ...(url !== undefined && { url }),
    ...fieldsOf(flags),
    ...(data !== undefined && { data: readData(data) }),
  };
  const invalid = problemOf(fields);
  if (invalid?.field === 'url') {
    const { rule } = invalid;
    throw new ConfigError({ field: urlName, value: withoutCredentials(url ?? ''), rule });
  }
  if (invalid !== null) {
    const { field, rule } = invalid;
    throw new ConfigError({ field: `--${field}`, value: given(fields, invalid), rule });
  }
  return fields;
}

type FieldFlags = Pick<AddFlags, 'every' | 'timeout' | 'command'>;

/** The flags that are fields of every target. */
function fieldsOf({ every, timeout, command }: FieldFlags): FieldFlags {
  if (every !== undefined) durationMs(every, '--every');
  if (timeout !== undefined) durationMs(timeout, '--timeout');
  return {
    ...(every !== undefined && { every }),
    ...(timeout !== undefined && { timeout }),
    ...(command !== undefined && { command }),
  };
}

function readData(text: string): Readonly<Record<string, unknown>> {
  const data = readJsonObject(text, '--data');
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return data;
  throw new ConfigError({
    field: '--data',
    value: '(not shown)',
    rule: 'it must be a JSON object',
  });
}

function fromFile(
  path: string,
  urls: readonly string[],
  { id, paused, data, ...flags }: AddFlags,
): NewTarget[] {
  if (urls.length > 0 || id !== undefined || data !== undefined)
    throw usageError(
      '--file cannot be combined with URLs, --id or --data: put them into the file.',
    );
  const defaults = { ...fieldsOf(flags), ...(paused === true && { isPaused: true }) };
  return parse(read(path), path).map((item, i) => {
    const target = typeof item === 'string' ? { url: item } : item;
    const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
    const complete = isObject ? { ...defaults, ...target } : {};
    const invalid = isObject
      ? problemOf(complete)
      : new InvalidRecord('entry', 'an entry must be a URL or an object');
    if (invalid === null) return complete;
    const message = `--file ${path}: entry ${i + 1}: ${invalid.why}. Nothing was added.`;
    throw new CliError(EXIT.usage, 'CONFIG_INVALID', message, {
      entry: i + 1,
      field: invalid.field,
    });
  });
}

function read(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw usageError(
      `--file ${path} could not be read (${code}). Check the path and its permissions.`,
    );
  }
}

function parse(text: string, path: string): unknown[] {
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list)) return list;
  } catch {
    // The error below does not repeat the text, which may hold secrets.
  }
  throw usageError(`--file ${path} is not a JSON list. Write it as [{ "url": "https://…" }, …].`);
}

/** Why a target cannot be added, before anything is sent. */
function problemOf(target: Record<string, unknown>): InvalidRecord | null {
  const { id = 'a', url } = target;
  const read = readTargetRecord(id as string, target, 0);
  if (read instanceof InvalidRecord) return read;
  const problem = typeof url === 'string' ? urlProblem(url) : null;
  return problem === null ? null : new InvalidRecord('url', problem);
}

function given(target: object, { field }: InvalidRecord): unknown {
  return (target as Record<string, unknown>)[field];
}
