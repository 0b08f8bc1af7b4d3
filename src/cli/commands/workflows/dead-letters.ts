/** `holdfast deadletters`. */
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { checkTargetId } from '../../../core/ids.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import type { Workflows } from '../../../workflow/workflows.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { writeList } from '../../ui/listing.ts';
import { agoText, printable } from '../../ui/text.ts';

export async function ls({ flags, output }: Context, target?: string): Promise<Exit> {
  if (target !== undefined) checkTargetId(target, 'TARGET');
  const nowMs = systemClock.wallMs();
  await withHoldfast(flags, ({ workflows }) =>
    writeList(output, workflows.deadLetters.list(target), {
      head: ['ID', 'WORKFLOW', 'ACTION', 'TRIES', 'DIED', 'WHY'],
      row: ({ id, workflow, action, tries, diedAt, reason }) => [
        id,
        workflow,
        action?.action_type ?? 'unreadable',
        String(tries),
        agoText(Date.parse(diedAt), nowMs),
        withoutCredentials(reason),
      ],
      json: (letter) => letter,
      none: 'There are no dead letters.',
    }),
  );
  return EXIT.ok;
}

interface Outcome {
  readonly id: string;
  /** The result as text and facts; null if the dead letter does not exist. */
  readonly done: { readonly text: string; readonly facts: object } | null;
}

export function retry(context: Context, ids: readonly string[]): Promise<Exit> {
  return each(context, ids, 'retry', async (workflows, id) => {
    const workflow = await workflows.deadLetters.retry(id);
    if (workflow === null) return null;
    const isHeld = (await workflows.get(workflow))?.isHeld === true;
    const when = isHeld ? 'now' : 'with its next claim, because it is not held now';
    const text = `${id} is retried: workflow '${workflow}' emits it again ${when}.`;
    return { text, facts: { workflow_id: workflow, isHeld } };
  });
}

export function drop(context: Context, ids: readonly string[]): Promise<Exit> {
  return each(context, ids, 'drop', async ({ deadLetters }, id) =>
    (await deadLetters.drop(id)) ? { text: `${id} dropped.`, facts: { dropped: true } } : null,
  );
}

/** A missing one does not stop the others. */
async function each(
  { flags, output }: Context,
  ids: readonly string[],
  verb: 'retry' | 'drop',
  act: (workflows: Workflows, id: string) => Promise<Outcome['done']>,
): Promise<Exit> {
  for (const id of ids) checkId(id);
  const outcomes = await withHoldfast(flags, async (holdfast) => {
    const all: Outcome[] = [];
    for (const id of ids) all.push({ id, done: await act(holdfast.workflows, id) });
    for (const { id, done } of all)
      if (done !== null) audit(holdfast, { action: `deadletter.${verb}`, subject: id });
    return all;
  });
  const missing = outcomes.filter(({ done }) => done === null);
  output.result(
    outcomes.map(({ id, done }) => ({ id, ...(done?.facts ?? { error: NOT_FOUND }) })),
    () => outcomes.flatMap(({ done }) => (done ? `${printable(done.text)}\n` : [])).join(''),
  );
  for (const { id } of missing) {
    const message = `dead letter '${id}' does not exist: it was retried or dropped, or its workflow was removed. List them: holdfast deadletters ls`;
    output.complain(new CliError(EXIT.no, NOT_FOUND, message, { id }));
  }
  return missing.length > 0 ? EXIT.no : EXIT.ok;
}

const NOT_FOUND = 'DEAD_LETTER_NOT_FOUND';

function checkId(id: string): void {
  if (/^[^/]+\/./.test(id)) return;
  const rule = "give it as 'holdfast deadletters ls' shows it: processor/…";
  throw new ConfigError({ field: 'ID', value: id, rule });
}
