/**
 * One instance on stage: `holdfast up` in a process of its own, under a supervisor that ends it
 * when this process is no more, also if it is frozen then. What it is called stays; whoever is
 * started anew under the name is another instance.
 *
 * **Dead.** In: at the beginning; its process has ended, whoever ended it. Out: start → starting.
 *
 * **Starting.** In: a process was ordered. Out: it is seen among the members of the fleet →
 * running; its process has ended → dead.
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
/** It runs under no lease: nothing but its end, or ours, ends it. */
const NEVER = {
  sentAtMs: 0,
  sentAtWallMs: 0,
  validMs: Number.MAX_SAFE_INTEGER,
  jumpMs: Number.MAX_SAFE_INTEGER,
};
/**
 * How long it may take to hand over, as it is told itself; and to end altogether, before it is
 * killed.
 */
const STOP_WITHIN_MS = 2_000;
const GRACE_MS = STOP_WITHIN_MS + 2_000;

export interface InstanceRunOptions {
  readonly clock: Clock;
  readonly commands: Commands;
  /** Where its configuration is. */
  readonly config: string;
  /**
   * Which store, with what a password may be in: not for command lines, which everybody can read.
   */
  readonly env: Readonly<Record<string, string>>;
  /** Its state is another. `why`: where that was nobody's wish. */
  onChange(actor: InstanceRun, why?: string): void;
}

/** One process of it. */
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

  /** Resolves when there is a process, or there will be none. */
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

  /** Resolves when it is dead. */
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

  /**
   * Asks it to end, and lets it go on first if it is frozen. Resolves when it is dead; that it is
   * killed if it takes too long is seen to.
   */
  async stop(): Promise<void> {
    this.#life?.run.stop();
    await this.#life?.run.outcome;
  }

  /**
   * Finds itself among those who take part: a member of its name that began no earlier than its
   * process.
   */
  see(members: readonly MemberView[]): void {
    const life = this.#life;
    if (life === null) return;
    const isIt = ({ id, name }: MemberView) =>
      name === this.name && beganAtMs(id) >= Math.floor(life.beganAtMs);
    life.instance ??= members.find(isIt)?.id ?? null;
    if (life.instance !== null) this.#look(life.group);
  }

  /** Signals come from other terminals, too. Where it can not be told, it is as it was. */
  #look(group: GroupRecord | null): void {
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

/** The moment at which an instance began, as its id has it. */
function beganAtMs(id: string): number {
  return Number(/-(\d+)-[0-9a-f]{8}$/.exec(id)?.[1] ?? 0) / 1e6;
}

function whyOf(outcome: CommandOutcome): string {
  if (outcome.event === 'failed') return `it could not be started: ${outcome.error}`;
  const { signal, code, output } = outcome;
  if (signal !== null) return `ended by ${signal}`;
  return code === 0 ? 'it has ended' : `it has ended with ${code}: ${output.at(-1) ?? ''}`;
}
