/** Events in words, for people: in logs, on terminals, in what a command line tells. */
import type { EventName } from '../core/events.ts';
import { readGap, STANDSTILL_MS } from '../core/gap.ts';
import { shortName } from '../core/short-name.ts';
import type { Facts } from './facts.ts';
import { exactly, spanOf } from './span.ts';

/**
 * What happened, as something that the instance did: `took device-7`. Facts are plain, as they are logged; they may come
 * from a store, where others write too, so nothing is taken for granted.
 */
export function sentenceOf(event: string, facts: Facts, instance?: string): string {
  const words = Object.hasOwn(SENTENCES, event) ? SENTENCES[event as EventName] : undefined;
  return words?.(facts, instance) ?? event;
}

type Words = (facts: Facts, instance: string | undefined) => string;

const SENTENCES: Readonly<Record<EventName, Words>> = {
  'lease.acquired': (facts) => `took ${lease(facts)}`,
  'lease.refused': (facts) => `may not have ${lease(facts)}: ${whyRefused(facts)}`,
  'lease.renewed': (facts) =>
    `renewed ${count(facts, facts.leaseClass === 'poll' ? 'target' : 'lease')} in ${span(facts.tookMs)}`,
  'lease.extended': (facts) => `renewed ${lease(facts)}`,
  'lease.uncertain': (facts) =>
    `is not certain of ${lease(facts)} any more (${text(facts.reason)}): nothing new begins`,
  'lease.confirmed': (facts) => `is certain of ${lease(facts)} again`,
  'lease.reasserted': (facts) => `put ${lease(facts)} back, which had vanished from the store`,
  'lease.releasing': (facts) => `lets go of ${lease(facts)}`,
  'lease.released': (facts) => `let go of ${lease(facts)} after ${span(facts.heldForMs)}`,
  'lease.abandoned': (facts) => `leaves ${lease(facts)} to run out: ${text(facts.why)}`,
  'lease.transferred': (facts) => `handed ${lease(facts)} to ${name(facts.successor)}`,
  'lease.lost': (facts) =>
    `lost ${lease(facts)} (${text(facts.reason)}) after ${span(facts.heldForMs)}${standstill(facts.lateMs)}`,
  'lease.revoked': (facts) =>
    `revoked ${lease(facts)} from ${name(facts.holder)}: ${text(facts.reason)}`,
  'lease.returned': (facts) => `gave ${lease(facts)} back, which it had been granted unawares`,
  'lease.unreturned': (facts) =>
    `leaves ${text(facts.count)} leases to expire that it may have been granted: ${text(facts.why)}`,
  'leader.elected': (facts) => `leads '${text(facts.election)}'`,
  'leader.lost': (facts) => `leads '${text(facts.election)}' no more (${text(facts.reason)})`,
  'leader.failed': (facts) => `failed to lead '${text(facts.election)}': ${text(facts.error)}`,
  'member.joined': (facts, instance) =>
    `${member(facts, instance)}joined${facts.isForeign === true ? ', an instance of another make' : ''}`,
  'member.left': (facts, instance) =>
    `${member(facts, instance)}${facts.reason === 'expired' ? 'is gone: its heartbeat ran out' : 'left'}`,
  'member.draining': (facts, instance) =>
    `${member(facts, instance)}is draining: it hands everything over`,
  'member.undrained': (facts, instance) => `${member(facts, instance)}takes part again`,
  'fleet.planned': (facts) =>
    `shared ${text(facts.targets)} targets out over ${text(facts.members)} members: ` +
    `${text(facts.quota)} are for this one, which has ${text(facts.owned)}`,
  'fleet.asked': (facts) => `asked ${name(facts.member)} for ${count(facts, 'target')}`,
  'target.taken': (facts) => {
    if (facts.how === 'first') return `has ${text(facts.target)}, which nobody had`;
    if (facts.how === 'handover') return `has ${text(facts.target)} from ${name(facts.from)}`;
    // The number first: a narrow terminal cuts the rest off.
    return `has ${text(facts.target)} after a gap of ${exactly(readGap(facts).gapMs)}, from ${name(facts.from)}`;
  },
  'fleet.stalled': (facts) => `can not see the fleet, and tries again: ${text(facts.error)}`,
  'fleet.resumed': (facts) => `sees the fleet again after ${span(facts.afterMs)}`,
  'discovery.failed': (facts) =>
    `could not look for what other programs wrote, and tries again later: ${text(facts.error)}`,
  'session.added': (facts) => `added ${text(facts.session)}`,
  'session.changed': (facts) => `changed ${text(facts.session)}`,
  'session.paused': (facts) => `paused ${text(facts.session)}`,
  'session.resumed': (facts) => `resumed ${text(facts.session)}`,
  'session.removed': (facts) => `removed ${text(facts.session)}`,
  'session.unreadable': (facts) =>
    `can not read session ${text(facts.session)}: ${text(facts.why)}`,
  'session.advanced': (facts) =>
    `brought session ${text(facts.session)} to ${text(facts.state)}${facts.reason ? ` (${text(facts.reason)})` : ''}`,
  'session.recovered': (facts) =>
    `goes on with session ${text(facts.session)}, which ${facts.from === null ? 'another worker has left' : `${name(facts.from)} has lost`}`,
  'pipeline.started': (facts) =>
    `runs session ${text(facts.session)}${facts.slot === null ? '' : ` on ${text(facts.slot)}`}`,
  'pipeline.ended': (facts) =>
    `has run session ${text(facts.session)} for ${span(facts.tookMs)}: ${text(facts.how)}${facts.why ? `, ${text(facts.why)}` : ''}${facts.isGone ? '' : ', and some of it could not be ended'}`,
  'pipeline.stuck': (facts) =>
    `has told session ${text(facts.session)} to end, which has not in ${span(facts.runsForMs)}`,
  'worker.reclaimed': (facts) =>
    `is ${text(facts.worker)} again, and has freed ${count(facts, 'lease')} of ${name(facts.predecessor)}, which is dead`,
  'worker.stalled': (facts) => `can not get at sessions, and tries again: ${text(facts.error)}`,
  'worker.resumed': (facts) => `gets at sessions again after ${span(facts.afterMs)}`,
  'intent.accepted': (facts) =>
    `accepted ${text(facts.type)} of ${text(facts.client)}: session ${text(facts.session)}`,
  'intent.replayed': (facts) =>
    `found session ${text(facts.session)} for ${text(facts.type)} of ${text(facts.client)}`,
  'intent.refused': (facts) =>
    `refused ${text(facts.type)} of ${text(facts.client)}: ${text(facts.why)}`,
  'intent.republished': (facts) =>
    `put session ${text(facts.session)} back into the stream of starts, which had lost it`,
  'sweep.failed': (facts) =>
    `could not look for what was lost or is too old, and tries again: ${text(facts.error)}`,
  'retention.swept': (facts) =>
    `forgot ${text(facts.sessions)} sessions that had ended, ${text(facts.deadLetters)} dead letters and ${text(facts.entries)} entries of the log`,
  'secret.created': () =>
    'made a secret for idempotency, kept in the store: better set HOLDFAST_IDEM_SECRET for all instances',
  'secret.differs': () =>
    'has another secret for idempotency than an instance before it: set HOLDFAST_IDEM_SECRET_PREVIOUS while it is changed, and the same for all',
  'poll.done': (facts) => `polled ${text(facts.target)} in ${span(facts.tookMs)}`,
  'poll.failed': (facts) =>
    `failed to poll ${text(facts.target)} after ${span(facts.tookMs)}: ${text(facts.why)}`,
  'poll.stuck': (facts) =>
    `has a poll of ${text(facts.target)} that does not stop, after ${span(facts.runsForMs)}`,
  'poll.settled': (facts) =>
    `has a poll of ${text(facts.target)} that has stopped after all, after ${span(facts.tookMs)}`,
  'result.refused': (facts) =>
    `came too late with a result of ${text(facts.target)}: fence ${text(facts.fence)} is older than ${text(facts.seen)}`,
  'result.failed': (facts) => `could not write ${count(facts, 'result')}: ${text(facts.error)}`,
  'workflow.claimed': (facts) =>
    `claimed workflow ${text(facts.workflow)} at epoch ${text(facts.epoch)}${goingOn(facts)}`,
  'workflow.updated': (facts) =>
    `set workflow ${text(facts.workflow)} to ${JSON.stringify(facts.state)} (epoch ${text(facts.epoch)})`,
  'workflow.transferred': (facts) =>
    `handed workflow ${text(facts.workflow)} over at epoch ${text(facts.transferEpoch)}, to lease ${text(facts.newLeaseId)}`,
  'workflow.revoked': (facts) =>
    `revoked lease ${text(facts.leaseId)} of workflow ${text(facts.workflow)}: ${text(facts.reason)}`,
  'workflow.violation': (facts) =>
    `refused ${facts.action === null ? 'a step' : `action ${text(facts.action)}`} of workflow ${text(facts.workflow)}: ${text(facts.code)}${wrong(facts)}`,
  'operator.acted': (facts) =>
    `was told by ${text(facts.by)}: ${text(facts.action)} ${text(facts.subject)}${facts.to === null ? '' : ` to ${text(facts.to)}`}${facts.reason === null ? '' : `, because ${text(facts.reason)}`}`,
  'action.emitted': (facts) => `emitted ${action(facts)} at epoch ${text(facts.epoch)}`,
  'action.started': (facts) => `began ${action(facts)}, try ${text(facts.tries)}`,
  'action.done': (facts) => `did ${action(facts)} in ${span(facts.tookMs)}`,
  'action.failed': (facts) =>
    `failed at ${action(facts)}, try ${text(facts.tries)}: ${text(facts.why)}; ${afterwards(facts)}`,
  'action.gone': (facts) => `came too late with ${action(facts)}: another has it by now`,
  'action.stuck': (facts) =>
    `has a handler of ${action(facts)} that does not stop, after ${span(facts.runsForMs)}, try ${text(facts.tries)}`,
  'processor.stalled': (facts) =>
    `can not get at the actions of ${text(facts.processor)}: ${text(facts.error)}`,
  'processor.resumed': (facts) =>
    `gets at the actions of ${text(facts.processor)} again, after ${span(facts.afterMs)}`,
  'log.dropped': (facts) => `could not write down ${count(facts, 'event')}: ${text(facts.error)}`,
  'log.unreadable': (facts) =>
    `skips what is no event in the shared log, such as entry ${text(facts.position)}: another program wrote it`,
  'loop.delayed': (facts) => `stood still for ${span(facts.lateMs)}: its event loop was blocked`,
  'store.connected': (facts) => `is connected to ${text(facts.store)}`,
  'store.disconnected': (facts) =>
    `gave up a connection to ${text(facts.store)}: ${text(facts.why)}`,
  'store.forgot': (facts) =>
    `finds that ${text(facts.store)} may have forgotten: ${text(facts.why)}`,
  'store.quarantined': (facts) =>
    `waits ${span(facts.leftMs)} for grants that ${text(facts.store)} may have forgotten`,
  'store.unreadable': (facts) =>
    `skips '${text(facts.key)}', which is not Holdfast's: ${text(facts.found)}`,
  'store.warned': (facts) => `${text(facts.store)}: ${text(facts.finding)} ${text(facts.advice)}`,
  'listener.failed': (facts) => `has a listener that failed: ${text(facts.error)}`,
};

function action({ type, workflow, target }: Facts): string {
  return `${text(type)} of workflow ${text(workflow)} for ${text(target)}`;
}

function goingOn({ reemitted, dropped }: Facts): string {
  if (reemitted !== 0) return `, and emitted ${text(reemitted)} anew`;
  return dropped === 0 ? '' : `, and dropped ${text(dropped)} of a revoked tenure`;
}

function wrong({ expectedLease, receivedLease, actionEpoch, currentEpoch }: Facts): string {
  if (actionEpoch !== null) return `, epoch ${text(actionEpoch)} at ${text(currentEpoch)}`;
  return `, lease ${text(receivedLease ?? 'none')} in the tenure of ${text(expectedLease ?? 'nobody')}`;
}

function afterwards({ retryInMs, isDead }: Facts): string {
  if (typeof retryInMs === 'number') return `again in ${span(retryInMs)}`;
  return isDead === true ? 'it is among the dead letters' : 'that is its result';
}

function whyRefused(facts: Facts): string {
  return facts.reason === 'held' ? `${name(facts.by)} has it` : text(facts.reason);
}

/** Targets are known by their ids alone. */
function lease({ leaseClass, key, target }: Facts): string {
  if (typeof target === 'string') return target;
  return leaseClass === 'poll' ? text(key) : `lease '${text(key)}'`;
}

/** An instance speaks of itself without its name. */
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

function standstill(lateMs: unknown): string {
  if (typeof lateMs !== 'number' || lateMs < STANDSTILL_MS) return '';
  return `, and noticed ${exactly(lateMs)} late: its process stood still`;
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?';
}
