/** `holdfast workflows`. */
import { systemClock } from '../../../core/clock.ts';
import { checkTargetId } from '../../../core/ids.ts';
import { shortName } from '../../../core/short-name.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import { LeaseNotFoundError } from '../../../workflow/errors.ts';
import type { WorkflowView } from '../../../workflow/workflows.ts';
import { audit, checkReason } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { writeList } from '../../ui/listing.ts';
import {
  agoText,
  counted,
  cut,
  jsonFacts,
  printable,
  spanOf,
  table,
  timeText,
  toJson,
} from '../../ui/text.ts';
import { eventOf } from './history-words.ts';
import { runLines, stepFacts, stepLines } from './run-text.ts';

/** A list shows this much of a state, which may be any JSON. */
const STATE_COLUMNS = 32;

export interface LsFlags {
  readonly held?: boolean;
}

export async function ls({ flags, output }: Context, { held = false }: LsFlags): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  await withHoldfast(flags, ({ workflows }) =>
    writeList(output, onlyHeld(workflows.list(), held), {
      head: [
        'ID',
        'FUNCTION',
        'PHASE',
        'STATE',
        'EPOCH',
        'UNRESOLVED',
        'PARKED',
        'UNREAD',
        'CHANGED',
        'HELD FOR',
        'LEASE',
      ],
      row: (view) => [
        view.id,
        view.run?.function ?? '-',
        view.run?.phase ?? '-',
        cut(stateText(view.state), STATE_COLUMNS),
        String(view.epoch),
        ...[view.unresolved, view.parked, view.unread].map(String),
        agoText(view.changedAtMs, nowMs),
        view.isHeld ? spanOf(view.expiresInMs) : '-',
        (view.isHeld && view.leaseId) || '-',
      ],
      json: factsOf,
      none: held ? 'No workflow is held.' : 'There are no workflows.',
    }),
  );
  return EXIT.ok;
}

async function* onlyHeld(
  views: AsyncIterable<WorkflowView>,
  held: boolean,
): AsyncGenerator<WorkflowView, void, void> {
  for await (const view of views) if (view.isHeld || !held) yield view;
}

export async function show({ flags, output }: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  const { view, loaded, past, results } = await withHoldfast(flags, async (holdfast) => {
    const { workflows } = holdfast;
    const view = await found(holdfast, id);
    const past: HistoryEntry[] = [];
    if (view.run !== null) for await (const entry of workflows.history(id)) past.push(entry);
    const loaded = await workflows.steps(id);
    const results = await workflows.callResults(id, loaded ?? { steps: [] });
    return { view, past, loaded, results };
  });
  output.result({ ...factsOf(view), ...stepFacts(id, loaded, results) }, () => {
    const nowMs = systemClock.wallMs();
    const lines = [
      ['id', view.id],
      ['state', stateText(view.state)],
      ['epoch', String(view.epoch)],
      ['held', heldText(view)],
      ['unresolved', `${counted(view.unresolved, 'action')} without a result${parkedText(view)}`],
      ['unread', `${counted(view.unread, 'result')} not read by an orchestrator`],
      ['created', `${timeText(view.createdAtMs)}, ${agoText(view.createdAtMs, nowMs)}`],
      ['changed', `${timeText(view.changedAtMs)}, ${agoText(view.changedAtMs, nowMs)}`],
    ];
    const all = [...lines, ...runLines(view.run), ...stepLines(id, loaded, past, results)];
    return table(all.map((line) => line.map(printable)));
  });
  return EXIT.ok;
}

export async function history({ flags, output }: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  await withHoldfast(flags, async (holdfast) => {
    await found(holdfast, id);
    await writeList(output, holdfast.workflows.history(id), {
      head: ['TIME', 'EPOCH', 'WHAT HAPPENED'],
      row: (entry) => [timeText(entry.atMs), String(entry.epoch), eventOf(entry)],
      json: ({ position: _, atMs, what, ...rest }) => ({
        at: new Date(atMs).toISOString(),
        ...rest,
        ...what,
      }),
      none: 'Its history is empty.',
    });
  });
  return EXIT.ok;
}

export interface RevokeFlags {
  readonly reason: string;
}

export async function revoke(
  { flags, output }: Context,
  named: string,
  { reason }: RevokeFlags,
): Promise<Exit> {
  checkTargetId(named, 'LEASE');
  checkReason(reason);
  const { revocation, view } = await withHoldfast(
    flags,
    async (holdfast) => {
      const revocation = await revokeNamed(holdfast, named, reason);
      audit(holdfast, { action: 'workflow.revoke', subject: revocation.workflow_id, reason });
      return { revocation, view: await holdfast.workflows.get(revocation.workflow_id) };
    },
    { history: 'on' },
  );
  const { workflow_id, lease_id, revoked_at } = revocation;
  const unresolved = view?.unresolved ?? 0;
  output.result({ workflow_id, lease_id, reason, revoked_at, unresolved }, () => {
    const left =
      unresolved === 0
        ? 'It has no actions without a result.'
        : `It has ${counted(unresolved, 'action')} without a result: the next claim drops ${unresolved === 1 ? 'it' : 'them'}, unless it sets resume: true.`;
    return printable(
      `Revoked lease ${lease_id} of workflow '${workflow_id}'. Everything its orchestrator still sends is refused; another instance may claim the workflow at once. ${left}`,
    ).concat('\n');
  });
  return EXIT.ok;
}

/** By the id of the lease, or of the workflow. */
async function revokeNamed({ workflows }: Holdfast, named: string, reason: string) {
  try {
    return await workflows.revokeLease(named, reason);
  } catch (error) {
    const view = error instanceof LeaseNotFoundError ? await workflows.get(named) : null;
    if (view === null) throw error;
    if (view.leaseId !== null) return workflows.revokeLease(view.leaseId, reason);
    const message = `workflow '${named}' has no lease: the last one was revoked. See when and why: holdfast workflows history ${named}`;
    throw new CliError(EXIT.no, 'LEASE_NOT_FOUND', message, { workflow_id: named });
  }
}

export async function rm({ flags, output }: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  const { came, view } = await withHoldfast(flags, async (holdfast) => {
    const { workflows } = holdfast;
    const came = await workflows.remove(id);
    if (came === 'removed') audit(holdfast, { action: 'workflow.remove', subject: id });
    return { came, view: came === 'held' ? await workflows.get(id) : null };
  });
  if (came === 'absent') throw notFound(id);
  if (came === 'held') {
    const by = view?.isHeld ? ` by lease ${view.leaseId} for ${spanOf(view.expiresInMs)} more` : '';
    const message = `workflow '${id}' is held${by}, so it was not removed. Stop its orchestrator, or revoke its lease: holdfast workflows revoke ${id} --reason …`;
    throw new CliError(EXIT.held, 'LEASE_HELD', message, { workflow_id: id });
  }
  output.result({ id, removed: true }, () =>
    printable(`Removed workflow '${id}', its actions, results and history.`).concat('\n'),
  );
  return EXIT.ok;
}

async function found({ workflows }: Holdfast, id: string): Promise<WorkflowView> {
  const view = await workflows.get(id);
  if (view === null) throw notFound(id);
  return view;
}

function notFound(id: string): CliError {
  const message = `workflow '${id}' does not exist. List the workflows: holdfast workflows ls`;
  return new CliError(EXIT.no, 'WORKFLOW_NOT_FOUND', message, { workflow_id: id });
}

function factsOf({ createdAtMs, changedAtMs, ...view }: WorkflowView): Record<string, unknown> {
  return {
    ...jsonFacts({ ...view }),
    createdAt: new Date(createdAtMs).toISOString(),
    changedAt: new Date(changedAtMs).toISOString(),
  };
}

/** No processor gets a parked action until an orchestrator emits it again. */
function parkedText({ parked }: WorkflowView): string {
  return parked === 0 ? '' : `, ${parked} of them parked until an orchestrator emits them again`;
}

function heldText({ isHeld, leaseId, instance, expiresInMs }: WorkflowView): string {
  const by = instance === null ? '' : ` of ${shortName(instance)}`;
  if (isHeld)
    return `by lease ${leaseId}${by}, for ${spanOf(expiresInMs)} more unless it is renewed`;
  if (leaseId === null) return 'no: its last lease was revoked';
  return `no; its last lease was ${leaseId}`;
}

function stateText(state: unknown): string {
  return typeof state === 'string' ? state : toJson(state);
}
