import { readFileSync } from 'node:fs';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { SessionExistsError } from '../../../fleet/targets/errors.ts';
import { InvalidRecord, readTargetRecord } from '../../../fleet/targets/target-record.ts';
import type { AddTargetResult, NewTarget } from '../../../fleet/targets/target-store.ts';
import { urlProblem } from '../../../fleet/targets/target-url.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { counted, printable } from '../../ui/text.ts';

export interface AddFlags {
  readonly id?: string;
  readonly every?: Duration;
  readonly paused?: boolean;
  readonly file?: string;
}

/** How many ids a line names. */
const MOST_NAMED = 5;

export async function add(
  { flags, output }: Context,
  urls: readonly string[],
  given: AddFlags,
): Promise<Exit> {
  const sessions =
    given.file === undefined ? named(urls, given) : fromFile(given.file, urls, given);
  const results = await withHoldfast(
    flags,
    async (holdfast) => {
      const results = await holdfast.targets.addAll(sessions);
      const added = results.flatMap((result) => (result.ok ? [result.session.id] : []));
      const [first] = added;
      // Of many one by one the log tells already.
      const subject = added.length === 1 ? first : counted(added.length, 'session');
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
  // Of one it is an error; many can be added again, and what is there already stays as it is.
  if (failed !== undefined && (!isSure || results.length === 1)) throw failed.error;
  const added = results.flatMap((result) => (result.ok ? [result.session.id] : []));
  const existing = results.flatMap((result) => (result.ok ? [] : [result.id]));
  output.result({ added, existing }, () => {
    const was = existing.length === 1 ? 'was' : 'were';
    const rest = existing.length > 0 ? `; ${listed(existing)} ${was} there already` : '';
    const some = added.length === 1 ? added[0] : counted(added.length, 'session');
    return printable(`Added ${added.length === 0 ? 'nothing' : some}${rest}.`).concat('\n');
  });
  return EXIT.ok;
}

function listed(ids: readonly string[]): string {
  if (ids.length > MOST_NAMED) return `${ids.length}`;
  return ids.join(', ');
}

function named(urls: readonly string[], { id, every, paused }: AddFlags): NewTarget[] {
  if (urls.length === 0)
    throw usageError('say what to poll: holdfast sessions add URL, or --file.');
  if (id !== undefined && urls.length > 1)
    throw usageError('--id names one session: give it one URL, or use --file for many.');
  if (every !== undefined) durationMs(every, '--every');
  return urls.map((url) => {
    const session = { url, ...(id !== undefined && { id }), ...(every !== undefined && { every }) };
    const flaw = flawOf(session);
    if (flaw?.field === 'url')
      throw new ConfigError({ field: 'URL', value: withoutCredentials(url), rule: flaw.rule });
    if (flaw !== null)
      throw new ConfigError({
        field: `--${flaw.field}`,
        value: given(session, flaw),
        rule: flaw.rule,
      });
    return { ...session, ...(paused === true && { isPaused: true }) };
  });
}

function fromFile(
  path: string,
  urls: readonly string[],
  { id, every, paused }: AddFlags,
): NewTarget[] {
  if (urls.length > 0 || id !== undefined)
    throw usageError('with --file the sessions are in the file: leave URLs and --id out.');
  const defaults = {
    ...(every !== undefined && { every }),
    ...(paused === true && { isPaused: true }),
  };
  return parse(read(path), path).map((item, i) => {
    const session = typeof item === 'string' ? { url: item } : item;
    const isObject = typeof session === 'object' && session !== null && !Array.isArray(session);
    const complete = isObject ? { ...defaults, ...session } : {};
    const flaw = isObject
      ? flawOf(complete)
      : new InvalidRecord('it', 'an entry is a URL or an object');
    if (flaw === null) return complete;
    const message = `--file ${path}: entry ${i + 1}: ${flaw.why}. Nothing was added.`;
    throw new CliError(EXIT.usage, 'CONFIG_INVALID', message, { entry: i + 1, field: flaw.field });
  });
}

function read(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw usageError(`--file ${path} can not be read (${code}). Check the path and its rights.`);
  }
}

function parse(text: string, path: string): unknown[] {
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list)) return list;
  } catch {
    // Said below, without what was in it.
  }
  throw usageError(`--file ${path} is no JSON list. Write it as [{ "url": "https://…" }, …].`);
}

/** What stands in the way of adding it, before anything is sent. */
function flawOf(session: Record<string, unknown>): InvalidRecord | null {
  const { id = 'a', url } = session;
  const read = readTargetRecord(id as string, session, 0);
  if (read instanceof InvalidRecord) return read;
  const problem = typeof url === 'string' ? urlProblem(url) : null;
  return problem === null ? null : new InvalidRecord('url', problem);
}

function given(session: object, { field }: InvalidRecord): unknown {
  return (session as Record<string, unknown>)[field];
}
