/**
 * One instance of the demo: `holdfast up` in a process of its own. A supervisor ends that process,
 * even a frozen one, when this process ends. A restarted instance has the same name and a new id.
 *
 * **Dead.** In: at the beginning; the process has ended. Out: start → starting.
 *
 * **Starting.** In: a process was ordered. Out: the instance is a member of the fleet → running;
 * the process has ended → dead.
 *
 * **Running.** Out: SIGSTOP, from here or elsewhere → frozen; its process has ended → dead.
 *
 * **Frozen.** Out: SIGCONT, from here or elsewhere → running; its process has ended → dead.
 */
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../../core/clock.ts';
import type { MemberView } from '../../../fleet/watch/fleet.ts';
import type { StageActor } from '../../../server/demo-stage.ts';
import type { CommandOutcome, CommandRun, Commands } from '../../../worker/supervisor/commands.ts';
import type { GroupRecord } from '../../../worker/supervisor/host.ts';
import { statOf } from '../../../worker/supervisor/proc.ts';
import { recordedGroup } from '../../../worker/supervisor/process-group.ts';

const BIN = fileURLToPath(new URL('../../bin.js', import.meta.url));
/** The process runs under no lease, so no deadline ends it. */
const NEVER = {
  sentAtMs: 0,
  sentAtWallMs: 0,
  validMs: Number.MAX_SAFE_INTEGER,
  jumpMs: Number.MAX_SAFE_INTEGER,
};
/** The time for the handover, which the instance is told, and for its end before it is killed. */
const STOP_WITHIN_MS = 2_000;
const GRACE_MS = STOP_WITHIN_MS + 2_000;

export interface InstanceRunOptions {
  readonly clock: Clock;
  readonly commands: Commands;
  /** The path of the configuration. */
  readonly config: string;
  /** Names the store. Not on the command line: other users could read a password there. */
  readonly env: Readonly<Record<string, string>>;
  /** The state has changed. `why`: the reason of an end. */
  onChange(actor: InstanceRun, why?: string): void;
}

/** One process of the instance. */
interface Life {
  readonly run: CommandRun;
  readonly beganAtMs: number;
  group: GroupRecord | null;
  instance: string | null;
}

export class InstanceRun {
  readonly name: string;
  readonly #options: InstanceRunOptions;
  #state: StageActor['state'] = 'dead';
  #life: Life | null = null;

  constructor(name: string, options: InstanceRunOptions) {
    this.name = name;
    this.#options = options;
  }

  get state(): StageActor['state'] {
    return this.#state;
  }

  get instance(): string | null {
    return this.#life?.instance ?? null;
  }

  get picture(): StageActor {
    const { name, state, instance } = this;
    return { name, instance, pid: this.#life?.group?.group ?? null, state };
  }

  /** Resolves when the process has started, or could not be started. */
  async start(): Promise<void> {
    const { clock, commands, config, env } = this.#options;
    const flags = ['--name', this.name, '--roles', 'poller,worker', '--config', config];
    const quiet = ['--log-level', 'warn', '--stop-within', `${STOP_WITHIN_MS}ms`];
    const beganAtMs = clock.wallMs();
    const run = commands.run({
      command: [process.execPath, BIN, 'up', ...flags, ...quiet],
      env,
      deadline: [NEVER],
      graceMs: GRACE_MS,
    });
    const life: Life = { run, beganAtMs, group: null, instance: null };
    this.#life = life;
    this.#become('starting');
    void run.outcome.then((outcome) => this.#end(life, outcome));
    life.group = await run.started;
    run.begin();
  }

  /** Resolves when the instance is dead. */
  async kill(): Promise<void> {
    const life = this.#life;
    await life?.run.started;
    this.#signal('SIGKILL');
    await life?.run.outcome;
  }

  freeze(): void {
    this.#signal('SIGSTOP');
    this.#become('frozen');
  }

  thaw(): void {
    this.#signal('SIGCONT');
    this.#become('running');
  }

  /** Thaws the instance and asks it to end. The supervisor kills it after the grace. */
  async stop(): Promise<void> {
    this.#life?.run.stop();
    await this.#life?.run.outcome;
  }

  /** Finds the instance: the member of its name that began no earlier than its process. */
  refresh(members: readonly MemberView[]): void {
    const life = this.#life;
    if (life === null) return;
    const isIt = ({ id, name }: MemberView) =>
      name === this.name && beganAtMs(id) >= Math.floor(life.beganAtMs);
    life.instance ??= members.find(isIt)?.id ?? null;
    if (life.instance !== null) this.#readState(life.group);
  }

  /** Another terminal may have stopped or continued it. Unreadable: the state stays. */
  #readState(group: GroupRecord | null): void {
    const stat = group === null ? null : statOf(group.group);
    const isFrozen = stat?.isStopped ?? this.#state === 'frozen';
    this.#become(isFrozen ? 'frozen' : 'running');
  }

  #signal(signal: NodeJS.Signals): void {
    const group = this.#life?.group ?? null;
    if (group !== null) recordedGroup(group).signal(signal);
  }

  #end(life: Life, outcome: CommandOutcome): void {
    if (this.#life !== life) return;
    this.#life = null;
    this.#become('dead', whyOf(outcome));
  }

  #become(state: StageActor['state'], why?: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#options.onChange(this, why);
  }
}

/** The start of an instance, which is a part of its id. */
function beganAtMs(id: string): number {
  return Number(/-(\d+)-[0-9a-f]{8}$/.exec(id)?.[1] ?? 0) / 1e6;
}

function whyOf(outcome: CommandOutcome): string {
  if (outcome.event === 'failed') return `it could not be started: ${outcome.error}`;
  const { signal, code, output } = outcome;
  if (signal !== null) return `ended by ${signal}`;
  return code === 0 ? 'it has ended' : `it has ended with ${code}: ${output.at(-1) ?? ''}`;
}
