/** The commands that look at workflows, and those that end a tenure, or all of one. */
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { checkTargetId } from '../../../core/ids.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { LeaseNotFoundError } from '../../../workflow/errors.ts';
import type { WorkflowView } from '../../../workflow/workflows.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { writeList } from '../../ui/listing.ts';
import { counted, cut, jsonFacts, printable, spanOf, table, toJson } from '../../ui/text.ts';
import { eventOf } from './history-words.ts';

/** A state may be any JSON; in a list so much of it is shown. */
const STATE_COLUMNS = 32;

export interface LsFlags {
  readonly held?: boolean;
}

export async function ls({ flags, output }: Context, { held = false }: LsFlags): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  await withHoldfast(flags, ({ workflows }) =>
    writeList(output, onlyHeld(workflows.list(), held), {
      head: [
        ...['ID', 'STATE', 'EPOCH', 'UNRESOLVED', 'PARKED', 'UNREAD'],
        ...['CHANGED', 'HELD FOR', 'LEASE'],
      ],
      row: (view) => [
        view.id,
        cut(stateText(view.state), STATE_COLUMNS),
        String(view.epoch),
        ...[view.unresolved, view.parked, view.unread].map(String),
        agoText(view.changedAtMs, nowMs),
        view.isHeld ? spanOf(view.expiresInMs) : '-',
        (view.isHeld && view.leaseId) || '-',
      ],
      json: factsOf,
      none: held ? 'Nobody holds a workflow.' : 'There are no workflows.',
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
  const view = await withHoldfast(flags, (holdfast) => found(holdfast, id));
  output.result(factsOf(view), () => {
    const nowMs = systemClock.wallMs();
    const lines = [
      ['id', view.id],
      ['state', stateText(view.state)],
      ['epoch', String(view.epoch)],
      ['held', heldText(view)],
      ['unresolved', `${counted(view.unresolved, 'action')} without a result${parkedText(view)}`],
      ['unread', `${counted(view.unread, 'result')} that no orchestrator has read`],
      ['created', `${timeText(view.createdAtMs)}, ${agoText(view.createdAtMs, nowMs)}`],
      ['changed', `${timeText(view.changedAtMs)}, ${agoText(view.changedAtMs, nowMs)}`],
    ];
    return table(lines.map((line) => line.map(printable)));
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
        ...{ at: new Date(atMs).toISOString(), ...rest, ...what },
      }),
      none: 'Nothing has happened to it that is still known.',
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
  if (reason.trim() === '') {
    const rule = 'a revocation needs a reason, for whoever finds it later';
    throw new ConfigError({ field: '--reason', value: reason, rule });
  }
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
        ? 'Nothing it emitted is without a result.'
        : `It leaves ${counted(unresolved, 'action')} without a result: the next claim drops ${unresolved === 1 ? 'it' : 'them'}, unless it is made with resume: true.`;
    return printable(
      `Revoked lease ${lease_id} of workflow '${workflow_id}'. Whatever its orchestrator still sends is refused; another instance may claim the workflow at once. ${left}`,
    ).concat('\n');
  });
  return EXIT.ok;
}

/** By its lease, or by the workflow that is in its tenure. */
async function revokeNamed({ workflows }: Holdfast, named: string, reason: string) {
  try {
    return await workflows.revokeLease(named, reason);
  } catch (error) {
    const view = error instanceof LeaseNotFoundError ? await workflows.get(named) : null;
    if (view === null) throw error;
    if (view.leaseId !== null) return workflows.revokeLease(view.leaseId, reason);
    const message = `workflow '${named}' is in nobody's tenure: its last one was revoked. 'holdfast workflows history ${named}' says when, and why.`;
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
    const by = view?.isHeld ? ` by lease ${view.leaseId} for ${spanOf(view.expiresInMs)} yet` : '';
    const message = `workflow '${id}' is held${by}, so it is not removed. Stop its orchestrator, or end its tenure: holdfast workflows revoke ${id} --reason …`;
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
  const message = `there is no workflow '${id}'. 'holdfast workflows ls' lists those there are.`;
  return new CliError(EXIT.no, 'WORKFLOW_NOT_FOUND', message, { workflow_id: id });
}

function factsOf({ createdAtMs, changedAtMs, ...view }: WorkflowView): Record<string, unknown> {
  return {
    ...jsonFacts({ ...view }),
    createdAt: new Date(createdAtMs).toISOString(),
    changedAt: new Date(changedAtMs).toISOString(),
  };
}

/** Parked is what is given to nobody before a tenure emits it anew. */
function parkedText({ parked }: WorkflowView): string {
  return parked === 0 ? '' : `, ${parked} of them parked until a tenure emits them anew`;
}

function heldText({ isHeld, leaseId, expiresInMs }: WorkflowView): string {
  if (isHeld)
    return `by lease ${leaseId}, for ${spanOf(expiresInMs)} yet unless it is renewed before`;
  if (leaseId === null) return 'by nobody: its last tenure was revoked';
  return `by nobody; its last tenure was that of lease ${leaseId}`;
}

function stateText(state: unknown): string {
  return typeof state === 'string' ? state : toJson(state);
}

function agoText(atMs: number, nowMs: number): string {
  return `${spanOf(Math.max(0, nowMs - atMs))} ago`;
}

function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace('T', ' ');
}
