/** A workflow with all that belongs to it, as a copy of the store reads and writes it. */
import { normalised } from '../../copied.ts';
import type {
  CopiedAction,
  CopiedEvent,
  CopiedResult,
  CopiedRun,
  CopiedSignal,
  CopiedStep,
  CopiedWorkflow,
} from '../../port/copy-store.ts';
import type { Call } from '../../port/store.ts';
import { RESULTS_KEPT } from '../../port/workflow-store.ts';
import { actionOf, COPIED, historyOf, linesOf } from './action-texts.ts';
import { addedAtMs, type StreamRow, type WorkConnection } from './work-connection.ts';

/** The fields of a hash. */
export type Facts = Readonly<Record<string, string | undefined>>;

export async function readHash(work: WorkConnection, key: string, call: Call): Promise<Facts> {
  const reply = (await work.send('copy', ['HGETALL', key], call)) as string[];
  return factsOf(reply);
}

/** From a list of fields and values. */
export function factsOf(list: readonly string[]): Facts {
  return Object.fromEntries(
    list.flatMap((field, i) => (i % 2 === 0 ? [[field, list[i + 1] ?? '']] : [])),
  );
}

export class CopiedWorkflows {
  readonly #work: WorkConnection;

  constructor(work: WorkConnection) {
    this.#work = work;
  }

  /** Null for a workflow that is listed and lost. */
  async read(id: string, call: Call): Promise<CopiedWorkflow | null> {
    const hash = (part: string) => readHash(this.#work, this.#at(part, id), call);
    const facts = await hash('facts');
    if (facts.epoch === undefined) return null;
    const [actions, targets, results, steps, signals] = await Promise.all(
      ['actions', 'targets', 'results', 'steps', 'signals'].map(hash),
    );
    const parked = new Set(
      (await this.#send(['SMEMBERS', this.#at('parked', id)], call)) as string[],
    );
    const all = ['-', '+'];
    const unread = (await this.#send(
      ['XRANGE', this.#at('unread', id), ...all],
      call,
    )) as StreamRow[];
    const history = (await this.#send(
      ['XRANGE', this.#at('history', id), ...all],
      call,
    )) as StreamRow[];
    const begun = facts.begun === '1';
    const leaseId = facts.lease ?? null;
    const phase =
      facts.revoked === '1' ? 'revoked' : begun || leaseId === null ? 'begun' : 'handed';
    const channel = this.#work.keys.channel('');
    return normalised({
      id,
      leaseId,
      phase,
      epoch: Number(facts.epoch),
      updatedEpoch: facts.updated ? Number(facts.updated) : null,
      state: facts.state ?? 'null',
      inbox: facts.inbox?.slice(channel.length) ?? '',
      createdMs: Number(facts.created),
      changedMs: Number(facts.changed),
      actions: pairs(actions).map(([actionId, record]): CopiedAction => {
        return { ...actionOf(actionId, record), isParked: parked.has(actionId) };
      }),
      taken: pairs(targets).flatMap(([target, text]) => {
        const [epoch = '', actionId = ''] = linesOf(text, 1);
        return epoch === '-1' ? [] : [{ target, epoch: Number(epoch), actionId }];
      }),
      results: resultsOf(unread, pairs(results)),
      history: history.map(historyOf).map(({ atMs, epoch, leaseId: of, what }): CopiedEvent => {
        return { atMs, epoch, leaseId: of, what: JSON.stringify(what) };
      }),
      run: await this.#run(id, facts, call),
      steps: stepsOf(pairs(steps)),
      signals: signalsOf(pairs(signals)),
    });
  }

  async write(copied: CopiedWorkflow, call: Call): Promise<void> {
    const { id, leaseId, run } = copied;
    const at = (part: string) => this.#at(part, id);
    const commands: [string, string, ...string[]][] = [
      ['HSET', at('facts'), ...this.#facts(copied)],
      ['ZADD', this.#work.keys.workflows, '0', id],
      ...partCommands(copied, at),
      ...resultCommands(copied, at),
    ];
    if (leaseId !== null)
      commands.push(['HSET', `${this.#work.keys.hub}workflow:tenures`, leaseId, id]);
    if (run !== null && run.dueUs !== null)
      commands.push(['ZADD', this.#dueAt(run), String(run.dueUs), id]);
    // One connection keeps their order.
    await Promise.all(commands.map((command) => this.#send(command, call)));
  }

  #facts(copied: CopiedWorkflow): string[] {
    const { leaseId, phase, epoch, updatedEpoch, state, inbox, run, steps, signals } = copied;
    const kept = [...steps, ...signals.filter(({ isReceived }) => !isReceived)];
    const bytes = kept.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);
    const isNew = phase === 'begun' && leaseId === null;
    const facts: Record<string, string | number> = {
      epoch,
      state,
      created: copied.createdMs,
      changed: copied.changedMs,
      bytes,
    };
    if (leaseId !== null) facts.lease = leaseId;
    if (!isNew) {
      facts.begun = phase === 'begun' ? '1' : '0';
      facts.revoked = phase === 'revoked' ? '1' : '0';
      facts.updated = updatedEpoch ?? '';
    }
    if (inbox !== '') facts.inbox = this.#work.keys.channel(inbox);
    if (run !== null) {
      const { function: fn, dueUs: _, ...rest } = run;
      Object.assign(facts, rest, { fn });
    }
    return Object.entries(facts).flatMap(([field, value]) => [field, String(value)]);
  }

  async #run(id: string, facts: Facts, call: Call): Promise<CopiedRun | null> {
    const { fn, phase = '', tries, waits = 'null', value = 'null', input = 'null' } = facts;
    if (fn === undefined) return null;
    const { hub } = this.#work.keys;
    const scores = await Promise.all(
      [`${hub}run:resting:${fn}`, `${hub}run:given:${fn}`].map((key) =>
        this.#send(['ZSCORE', key, id], call),
      ),
    );
    const due = (scores as (string | null)[]).find((score) => score !== null);
    const dueUs = due === undefined || due === null ? null : Number(due);
    return { function: fn, phase, dueUs, tries: Number(tries), waits, value, input };
  }

  /** Runs in the hands of an orchestrator are apart from those that rest. */
  #dueAt({ function: fn, phase }: CopiedRun): string {
    return `${this.#work.keys.hub}run:${phase === 'running' ? 'given' : 'resting'}:${fn}`;
  }

  #at(part: string, id: string): string {
    return `${this.#work.keys.hub}workflow:${part}:${id}`;
  }

  #send(args: readonly [string, string, ...string[]], call: Call): Promise<unknown> {
    return this.#work.send('copy', args, call);
  }
}

function pairs(facts: Facts = {}): [string, string][] {
  return Object.entries(facts).map(([field, value]) => [field, value ?? '']);
}

/** Unread results, and those that answer for an action, by position. */
function resultsOf(
  unread: readonly StreamRow[],
  known: readonly [string, string][],
): CopiedResult[] {
  const rows = new Map<string, CopiedResult>();
  for (const [position, fields] of unread) {
    const [, actionId = '', , text = ''] = fields;
    rows.set(position, copiedResult(position, actionId, text, { isUnread: true, isKnown: false }));
  }
  for (const [actionId, record] of known) {
    const [position = '', text = ''] = linesOf(record, 1);
    const isUnread = rows.has(position);
    rows.set(position, copiedResult(position, actionId, text, { isUnread, isKnown: true }));
  }
  return [...rows].sort(([a], [b]) => byPosition(a, b)).map(([, result]) => result);
}

function copiedResult(
  position: string,
  actionId: string,
  text: string,
  flags: { readonly isUnread: boolean; readonly isKnown: boolean },
): CopiedResult {
  const [epoch = '', outcome = '', target = '', json = ''] = linesOf(text, 3);
  const atMs = addedAtMs(position);
  return { actionId, target, epoch: Number(epoch), outcome, json, atMs, ...flags };
}

/** Positions are ids of a Redis Stream. */
export function byPosition(a: string, b: string): number {
  const [[ms = 0, n = 0], [otherMs = 0, otherN = 0]] = [a, b].map((id) =>
    id.split('-').map(Number),
  ) as [number[], number[]];
  return ms - otherMs || n - otherN;
}

function stepsOf(steps: readonly [string, string][]): CopiedStep[] {
  return steps
    .map(([name, text]): CopiedStep => {
      const [kind = '', done = '', at = '', json = ''] = linesOf(text, 3);
      return { name, kind, isDone: done === '1', json, atUs: Number(at) };
    })
    .sort((a, b) => a.atUs - b.atUs || (a.name < b.name ? -1 : 1));
}

function signalsOf(signals: readonly [string, string][]): CopiedSignal[] {
  return signals
    .map(([id, text]): CopiedSignal => {
      const [at = '', received = '', name = '', json = ''] = linesOf(text, 3);
      return { id, name, json, atUs: Number(at), isReceived: received === '1' };
    })
    .sort((a, b) => a.atUs - b.atUs || (a.id < b.id ? -1 : 1));
}

type Command = [string, string, ...string[]];

function partCommands(copied: CopiedWorkflow, at: (part: string) => string): Command[] {
  const { actions, taken, steps, signals, history } = copied;
  const fields = (part: string, list: readonly [string, string][]): Command[] =>
    list.map(([field, value]) => ['HSET', at(part), field, value]);
  // A target that has taken nothing is on record, too: its lane is found by it.
  const targets = new Map(actions.map(({ target }) => [target, '-1\n']));
  for (const { target, epoch, actionId } of taken) targets.set(target, `${epoch}\n${actionId}`);
  const records = actions.map(
    ({ id, epoch, leaseId, target, priority, body }): [string, string] => {
      return [id, [epoch, leaseId, target, priority, body].join('\n')];
    },
  );
  return [
    ...fields('actions', records),
    ...fields('targets', [...targets]),
    ...actions
      .filter(({ isParked }) => isParked)
      .map(({ id }): Command => ['SADD', at('parked'), id]),
    ...fields(
      'steps',
      steps.map(({ name, kind, isDone, atUs, json }) => {
        return [name, [kind, isDone ? 1 : 0, atUs, json].join('\n')];
      }),
    ),
    ...fields(
      'signals',
      signals.map(({ id, name, atUs, isReceived, json }) => {
        return [id, [atUs, isReceived ? 1 : 0, name, json].join('\n')];
      }),
    ),
    ...history.map(({ atMs, epoch, leaseId, what }, i): Command => {
      const event = ['e', String(epoch), 'l', leaseId ?? '', 'k', COPIED];
      const rest = ['a', '', 'b', '', 'c', '', 'd', what];
      return ['XADD', at('history'), `${atMs}-${i + 1}`, ...event, ...rest];
    }),
  ];
}

function resultCommands({ results }: CopiedWorkflow, at: (part: string) => string): Command[] {
  return results.flatMap((result, i): Command[] => {
    const { actionId, epoch, outcome, target, json, atMs, isUnread, isKnown } = result;
    const position = `${atMs}-${i + 1}`;
    const text = [epoch, outcome, target, json].join('\n');
    const commands: Command[] = [];
    if (isUnread) commands.push(['XADD', at('unread'), position, 'a', actionId, 'r', text]);
    if (isKnown) commands.push(['HSET', at('results'), actionId, `${position}\n${text}`]);
    if (i >= results.length - RESULTS_KEPT)
      commands.push(['RPUSH', at('settled'), `${position} ${actionId}`]);
    return commands;
  });
}
