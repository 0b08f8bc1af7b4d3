/** Events as sentences, for logs, terminals and commands. */
import type { EventName } from '../core/events.ts';
import { readGap, STANDSTILL_MS } from '../core/gap.ts';
import { LOSS_TEXTS } from '../core/loss-reason.ts';
import { shortName } from '../core/short-name.ts';
import { exactly, spanOf } from '../core/time-text.ts';
import type { Facts } from './facts.ts';

/**
 * A sentence whose subject is the instance: `took device-7`. Facts are plain, as in the log. They
 * may come from the store, where other programs write too, so any of them may be missing or wrong.
 */
export function sentenceOf(event: string, facts: Facts, instance?: string): string {
  const words = Object.hasOwn(SENTENCES, event) ? SENTENCES[event as EventName] : undefined;
  return words?.(facts, instance) ?? event;
}

type Words = (facts: Facts, instance: string | undefined) => string;

const SENTENCES: Readonly<Record<EventName, Words>> = {
  'lease.acquired': (facts) => `took ${lease(facts)}`,
  'lease.refused': (facts) => `could not take ${lease(facts)}: ${whyRefused(facts)}`,
  'lease.renewed': (facts) =>
    `renewed ${count(facts, facts.leaseClass === 'poll' ? 'target' : 'lease')} in ${span(facts.tookMs)}`,
  'lease.extended': (facts) => `renewed ${lease(facts)}`,
  'lease.uncertain': (facts) =>
    `starts no new work on ${lease(facts)}: ${worded(DOUBTS, facts.reason)}`,
  'lease.confirmed': (facts) => `may work on ${lease(facts)} again: its lease is confirmed`,
  'lease.reasserted': (facts) => `restored ${lease(facts)}, which the store had lost`,
  'lease.releasing': (facts) => `is releasing ${lease(facts)}`,
  'lease.released': (facts) =>
    `released ${lease(facts)}${heldFor(facts.heldForMs)}${kept(facts.keptForMs)}`,
  'lease.abandoned': (facts) =>
    `did not release ${lease(facts)}, which will expire: ${text(facts.why)}`,
  'lease.transferred': (facts) =>
    facts.successor === facts.holder
      ? `left ${lease(facts)} to its client, ${name(facts.holder)}`
      : `handed ${lease(facts)} to ${name(facts.successor)}`,
  'lease.lost': (facts) =>
    `lost ${lease(facts)} after ${span(facts.heldForMs)}: ${worded(LOSSES, facts.reason)}${standstill(facts.lateMs)}`,
  'lease.revoked': (facts) =>
    `revoked ${lease(facts)} from ${name(facts.holder)}: ${text(facts.reason)}`,
  'lease.returned': (facts) => `released ${lease(facts)}, which a late reply had granted`,
  'lease.unreturned': (facts) =>
    `could not release ${text(facts.count)} leases that late replies may have granted; they will expire: ${text(facts.why)}`,
  'leader.elected': (facts) => `is the leader of '${text(facts.election)}'`,
  'leader.lost': (facts) =>
    `is no longer the leader of '${text(facts.election)}': ${worded(LOSSES, facts.reason)}`,
  'leader.failed': (facts) => `failed as leader of '${text(facts.election)}': ${text(facts.error)}`,
  'member.joined': (facts, instance) =>
    `${member(facts, instance)}joined${facts.isForeign === true ? ' (not a Holdfast instance)' : ''}`,
  'member.left': (facts, instance) =>
    `${member(facts, instance)}${facts.reason === 'expired' ? 'is gone: its heartbeat expired' : 'left'}`,
  'member.draining': (facts, instance) =>
    `${member(facts, instance)}is draining: it hands over all its targets`,
  'member.undrained': (facts, instance) => `${member(facts, instance)}takes targets again`,
  'fleet.planned': (facts) =>
    `planned ${text(facts.targets)} targets for ${text(facts.members)} instances: ` +
    `${text(facts.quota)} for this one, which owns ${text(facts.owned)}`,
  'fleet.asked': (facts) => `asked ${name(facts.member)} to hand over ${count(facts, 'target')}`,
  'target.taken': (facts) => {
    if (facts.how === 'first') return `took ${text(facts.target)}, which had no owner`;
    if (facts.how === 'handover')
      return `took ${text(facts.target)} from ${name(facts.from)} (handover)`;
    // The number comes early: a narrow terminal cuts the end off.
    return `took ${text(facts.target)} after a gap of ${exactly(readGap(facts).gapMs)}, from ${name(facts.from)}`;
  },
  'fleet.stalled': (facts) => `cannot see the fleet, and tries again: ${text(facts.error)}`,
  'fleet.resumed': (facts) => `sees the fleet again after ${span(facts.afterMs)}`,
  'discovery.failed': (facts) =>
    `could not search the store for records of other programs, and tries again later: ${text(facts.error)}`,
  'session.added': (facts) => `added ${text(facts.session)}`,
  'session.changed': (facts) => `changed ${text(facts.session)}`,
  'session.paused': (facts) => `paused ${text(facts.session)}`,
  'session.resumed': (facts) => `resumed ${text(facts.session)}`,
  'session.removed': (facts) => `removed ${text(facts.session)}`,
  'session.unreadable': (facts) =>
    `cannot read the record of ${text(facts.session)}: ${text(facts.why)}`,
  'session.advanced': (facts) =>
    `set session ${text(facts.session)} to ${text(facts.state)}${facts.reason ? ` (${text(facts.reason)})` : ''}`,
  'session.recovered': (facts) =>
    `took over session ${text(facts.session)}, which ${facts.from === null ? 'another worker' : name(facts.from)} no longer runs`,
  'pipeline.started': (facts) =>
    `runs session ${text(facts.session)}${facts.slot === null ? '' : ` on ${text(facts.slot)}`}`,
  'pipeline.ended': (facts) =>
    `ran session ${text(facts.session)} for ${span(facts.tookMs)}: ${text(facts.how)}${facts.why ? `, ${text(facts.why)}` : ''}${facts.isGone ? '' : ', and could not end all of its processes'}`,
  'pipeline.retried': (facts) =>
    `tries session ${text(facts.session)} again in ${span(facts.inMs)} (try ${text(facts.attempt)})${facts.why ? `: ${text(facts.why)}` : ''}`,
  'pipeline.stuck': (facts) =>
    `told session ${text(facts.session)} to stop, and it still runs after ${span(facts.runsForMs)}`,
  'worker.reclaimed': (facts) =>
    `restarted as worker ${text(facts.worker)}, and released ${count(facts, 'lease')} of ${name(facts.predecessor)}, which is dead`,
  'worker.stalled': (facts) => `cannot read sessions, and tries again: ${text(facts.error)}`,
  'worker.resumed': (facts) => `reads sessions again after ${span(facts.afterMs)}`,
  'intent.accepted': (facts) =>
    `accepted ${text(facts.type)} of ${text(facts.client)}: session ${text(facts.session)}`,
  'intent.replayed': (facts) =>
    `answered ${text(facts.type)} of ${text(facts.client)} with the existing session ${text(facts.session)}`,
  'intent.refused': (facts) =>
    `refused ${text(facts.type)} of ${text(facts.client)}: ${text(facts.why)}`,
  'intent.republished': (facts) =>
    `put session ${text(facts.session)} back into the stream of starts, which had lost it`,
  'intent.waiting': (facts) =>
    `${count(facts, 'session')} of kind ${text(facts.kind)} waited up to ${span(facts.waitedMs)} for a worker: start one that takes this kind (holdfast up --roles worker --kinds ${text(facts.kind)})`,
  'sweep.failed': (facts) =>
    `could not search for lost or outdated entries, and tries again: ${text(facts.error)}`,
  'retention.swept': (facts) =>
    `removed ${text(facts.sessions)} ended sessions, ${text(facts.deadLetters)} dead letters and ${text(facts.entries)} entries of the log`,
  'secret.created': () =>
    'made an idempotency secret and stored it: better set HOLDFAST_IDEM_SECRET for all instances',
  'secret.differs': () =>
    'has another idempotency secret than an earlier instance: set the same HOLDFAST_IDEM_SECRET for all, and HOLDFAST_IDEM_SECRET_PREVIOUS during a change',
  'poll.done': (facts) => `polled ${text(facts.target)} in ${span(facts.tookMs)}`,
  'poll.failed': (facts) =>
    `failed to poll ${text(facts.target)} after ${span(facts.tookMs)}: ${text(facts.why)}`,
  'poll.stuck': (facts) =>
    `cannot stop a poll of ${text(facts.target)}, which still runs after ${span(facts.runsForMs)}`,
  'poll.settled': (facts) =>
    `has stopped the stuck poll of ${text(facts.target)} after ${span(facts.tookMs)}`,
  'run.started': (facts) => `started the task of ${text(facts.target)}`,
  'run.exited': (facts) =>
    `starts the task of ${text(facts.target)} again in ${span(facts.restartInMs)}: it ${facts.why === null ? 'returned' : 'failed'} after ${span(facts.ranForMs)}${facts.why === null ? '' : ` with '${text(facts.why)}'`}${Number(facts.exits) > 1 ? `, for the ${text(facts.exits)}. time in a row` : ''}`,
  'run.ended': (facts) =>
    `has stopped the task of ${text(facts.target)} after ${span(facts.ranForMs)}`,
  'run.silent': (facts) =>
    `has seen no progress in the task of ${text(facts.target)} for ${span(facts.silentForMs)}${facts.isStopped === true ? ', and told it to stop' : '; it keeps running'}`,
  'run.resumed': (facts) => `sees progress in the task of ${text(facts.target)} again`,
  'run.stuck': (facts) =>
    `cannot stop the task of ${text(facts.target)}, which still runs after ${span(facts.runsForMs)}`,
  'run.settled': (facts) =>
    `has stopped the stuck task of ${text(facts.target)} after ${span(facts.ranForMs)}`,
  'result.refused': (facts) =>
    `was too late with a result of ${text(facts.target)}: its fence ${text(facts.fence)} is older than ${text(facts.seen)}`,
  'result.failed': (facts) => `could not write ${count(facts, 'result')}: ${text(facts.error)}`,
  'workflow.claimed': (facts) =>
    `claimed workflow ${text(facts.workflow)} at epoch ${text(facts.epoch)}${recovered(facts)}`,
  'workflow.updated': (facts) =>
    `set workflow ${text(facts.workflow)} to ${JSON.stringify(facts.state)} (epoch ${text(facts.epoch)})`,
  'workflow.transferred': (facts) =>
    `handed workflow ${text(facts.workflow)} over at epoch ${text(facts.transferEpoch)}, to lease ${text(facts.newLeaseId)}`,
  'workflow.started': (facts) =>
    `started workflow ${text(facts.workflow)} of function ${text(facts.function)}`,
  'workflow.signalled': (facts) =>
    `sent signal ${text(facts.signal)} to workflow ${text(facts.workflow)}`,
  'workflow.suspended': (facts) =>
    `suspended workflow ${text(facts.workflow)} ${facts.wakeInMs === null ? 'until a signal comes' : `for ${span(facts.wakeInMs)}, or until a signal comes`}`,
  'workflow.completed': (facts) =>
    `completed workflow ${text(facts.workflow)} of function ${text(facts.function)}`,
  'workflow.failed': (facts) =>
    `workflow ${text(facts.workflow)} failed in try ${text(facts.tries)} of function ${text(facts.function)}${facts.retryInMs === null ? ', the last' : `, and is tried again in ${span(facts.retryInMs)}`}: ${text(facts.why)}`,
  'step.failed': (facts) =>
    `step ${text(facts.step)} of workflow ${text(facts.workflow)} failed in try ${text(facts.tries)}, and is tried again in ${span(facts.retryInMs)}: ${text(facts.why)}`,
  'function.stalled': (facts) =>
    `cannot read the due workflows of ${text(facts.function)}, and tries again: ${text(facts.error)}`,
  'function.resumed': (facts) =>
    `reads the due workflows of ${text(facts.function)} again after ${span(facts.afterMs)}`,
  'workflow.revoked': (facts) =>
    `revoked lease ${text(facts.leaseId)} of workflow ${text(facts.workflow)}: ${text(facts.reason)}`,
  'workflow.violation': (facts) =>
    `refused ${facts.action === null ? 'a step' : `action ${text(facts.action)}`} of workflow ${text(facts.workflow)}: ${text(facts.code)}${mismatch(facts)}`,
  'operator.acted': (facts) =>
    `carried out ${text(facts.action)} ${text(facts.subject)}${facts.to === null ? '' : ` to ${text(facts.to)}`} for ${text(facts.by)}${facts.reason === null ? '' : `: ${text(facts.reason)}`}`,
  'action.emitted': (facts) => `emitted ${action(facts)} at epoch ${text(facts.epoch)}`,
  'action.started': (facts) => `started ${action(facts)}, try ${text(facts.tries)}`,
  'action.done': (facts) => `finished ${action(facts)} in ${span(facts.tookMs)}`,
  'action.failed': (facts) =>
    `failed ${action(facts)}, try ${text(facts.tries)}: ${text(facts.why)}; ${afterwards(facts)}`,
  'action.gone': (facts) =>
    `dropped its result of ${action(facts)}: another processor has taken it over, so the handler may have run twice`,
  'action.stuck': (facts) =>
    `cannot stop the handler of ${action(facts)}, which still runs after ${span(facts.runsForMs)}, try ${text(facts.tries)}`,
  'processor.stalled': (facts) =>
    `cannot read the actions of ${text(facts.processor)}, and tries again: ${text(facts.error)}`,
  'processor.resumed': (facts) =>
    `reads the actions of ${text(facts.processor)} again after ${span(facts.afterMs)}`,
  'log.dropped': (facts) =>
    `could not write ${count(facts, 'event')} to the shared log: ${text(facts.error)}`,
  'log.unreadable': (facts) =>
    `skips entries of the shared log that are not events, such as ${text(facts.position)}: another program wrote them`,
  'loop.delayed': (facts) => `was blocked for ${span(facts.lateMs)}: its event loop did not run`,
  'store.connected': (facts) => `is connected to ${text(facts.store)}`,
  'store.disconnected': (facts) =>
    `closed a connection to ${text(facts.store)}: ${text(facts.why)}`,
  'store.forgot': (facts) =>
    `found that ${text(facts.store)} may have lost data: ${text(facts.why)}`,
  'store.quarantined': (facts) =>
    `gets no new leases from ${text(facts.store)} for ${span(facts.leftMs)}, because it may have lost some`,
  'store.unreadable': (facts) =>
    `skips the key '${text(facts.key)}', which another program wrote: ${text(facts.found)}`,
  'store.warned': (facts) => `${text(facts.store)}: ${text(facts.finding)} ${text(facts.advice)}`,
  'listener.failed': (facts) =>
    `caught an error of the listener for '${text(facts.event)}': ${text(facts.error)}. Leases are not affected`,
};

function action({ type, workflow, target }: Facts): string {
  return `${text(type)} of workflow ${text(workflow)} for ${text(target)}`;
}

function recovered({ reemitted, dropped }: Facts): string {
  if (reemitted !== 0) return `, and emitted ${text(reemitted)} actions again`;
  return dropped === 0 ? '' : `, and dropped ${text(dropped)} actions of a revoked lease`;
}

function mismatch({ expectedLease, receivedLease, actionEpoch, currentEpoch }: Facts): string {
  if (actionEpoch !== null)
    return `, its epoch is ${text(actionEpoch)} and the workflow’s ${text(currentEpoch)}`;
  return `, its lease is ${text(receivedLease ?? 'none')} and the workflow’s ${text(expectedLease ?? 'none')}`;
}

function afterwards({ retryInMs, isDead }: Facts): string {
  if (typeof retryInMs === 'number') return `it is retried in ${span(retryInMs)}`;
  return isDead === true ? 'it is a dead letter now' : 'the failure is its result';
}

function whyRefused(facts: Facts): string {
  return facts.reason === 'held' ? `${name(facts.by)} holds it` : text(facts.reason);
}

/** A target by its id alone, another lease as `lease 'key'`. */
function lease({ leaseClass, key, target }: Facts): string {
  if (typeof target === 'string') return target;
  return leaseClass === 'poll' ? text(key) : `lease '${text(key)}'`;
}

/** The name of the instance, unless it is the subject already. */
function member({ member }: Facts, instance: string | undefined): string {
  return member === instance ? '' : `${name(member)} `;
}

function name(id: unknown): string {
  return shortName(text(id));
}

function count({ count }: Facts, noun: string): string {
  return `${text(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function span(ms: unknown): string {
  return typeof ms === 'number' ? spanOf(ms) : '?';
}

/** A client over HTTP says nothing of it. */
function heldFor(ms: unknown): string {
  return ms === null ? ' for its client' : ` after ${span(ms)}`;
}

/** Its key stays taken for a time. */
function kept(forMs: unknown): string {
  return typeof forMs === 'number' && forMs > 0 ? `, and keeps it for ${span(forMs)}` : '';
}

/** Why a holder is not sure of its lease. */
const DOUBTS: Readonly<Record<string, string>> = {
  renewal_failed: 'a renewal failed, and the lease may expire',
  clock_jump: 'the wall clock jumped, and the lease may have expired',
};

/** Why a lease, or a leader's office, is over. */
const LOSSES: Readonly<Record<string, string>> = {
  ...LOSS_TEXTS,
  failed: 'its work failed',
  stopped: 'it was stopped',
};

function worded(texts: Readonly<Record<string, string>>, reason: unknown): string {
  const given = text(reason);
  return Object.hasOwn(texts, given) ? (texts[given] ?? given) : given;
}

function standstill(lateMs: unknown): string {
  if (typeof lateMs !== 'number' || lateMs < STANDSTILL_MS) return '';
  return `, and noticed ${exactly(lateMs)} late: its process stood still`;
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?';
}
