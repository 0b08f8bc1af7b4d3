/** `holdfast workflows start`, `signal` and `restart`. */
import { readFileSync } from 'node:fs';
import { ConfigError } from '../../../core/errors.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { printable } from '../../ui/text.ts';

export interface StartFlags {
  readonly input?: string;
}

export interface SignalFlags {
  readonly value?: string;
}

export async function start(
  { flags, output }: Context,
  name: string,
  id: string,
  { input }: StartFlags,
): Promise<Exit> {
  const value = jsonFrom(input, '--input');
  const { isNew } = await withHoldfast(flags, async (holdfast) => {
    const started = await holdfast.workflows.start(name, id, value);
    if (started.isNew) audit(holdfast, { action: 'workflow.start', subject: id });
    return started;
  });
  const text = isNew
    ? `Started workflow '${id}'. An instance that runs function '${name}' takes it.`
    : `Workflow '${id}' exists already, and was left as it is.`;
  output.result({ id, function: name, started: isNew }, () => printable(text).concat('\n'));
  return EXIT.ok;
}

export async function signal(
  { flags, output }: Context,
  id: string,
  name: string,
  { value }: SignalFlags,
): Promise<Exit> {
  const json = jsonFrom(value, '--value');
  await withHoldfast(flags, async (holdfast) => {
    await holdfast.workflows.signal(id, name, json);
    audit(holdfast, { action: 'workflow.signal', subject: id });
  });
  output.result({ id, signal: name, kept: true }, () =>
    printable(`Sent signal '${name}' to workflow '${id}'.`).concat('\n'),
  );
  return EXIT.ok;
}

export async function restart({ flags, output }: Context, id: string): Promise<Exit> {
  await withHoldfast(flags, async (holdfast) => {
    await holdfast.workflows.restart(id);
    audit(holdfast, { action: 'workflow.restart', subject: id });
  });
  output.result({ id, restarted: true }, () =>
    printable(`Workflow '${id}' runs again.`).concat('\n'),
  );
  return EXIT.ok;
}

/** JSON, or the name of a file that has some. */
function jsonFrom(text: string | undefined, field: string): unknown {
  if (text === undefined) return null;
  const file = text.startsWith('@') ? text.slice(1) : null;
  try {
    return JSON.parse(file === null ? text : readFileSync(file, 'utf8')) as unknown;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError({
      field,
      value: text,
      rule: `it must be JSON, or @FILE with JSON (${why})`,
    });
  }
}
