import type { Random } from '../../src/core/random.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { COLLECTION_COMMANDS } from './collection-commands.ts';
import { type Command, type CommandContext, hasArity } from './command.ts';
import { Database } from './database.ts';
import { infoText } from './info.ts';
import { KEY_COMMANDS } from './key-commands.ts';
import { LIST_COMMANDS } from './list-commands.ts';
import { NotSimulatedError } from './lua-value.ts';
import { Scripting } from './scripting.ts';
import { SORTED_SET_COMMANDS } from './sorted-set-commands.ts';
import { STREAM_COMMANDS } from './stream-commands.ts';
import { asReply, OK, Status, type Value } from './value.ts';

export interface SimRedisParts {
  /**
   * The server's wall clock, which may be set: for `TIME` and for expiry. With fractions, as there
   * are µs.
   */
  wallMs(): number;
  /** How much time has passed in truth: for what is lost at the end. */
  nowMs(): number;
  readonly random: Random;
  /** Whether it says that it keeps an append-only file. */
  readonly appendOnly?: boolean;
}

/** What a server knows of one connection. */
export class SimClient {
  readonly push: (reply: Reply) => void;
  readonly channels = new Set<string>();
  isConnected = true;

  constructor(push: (reply: Reply) => void) {
    this.push = push;
  }
}

/** Digits of a run id and of a replication id. */
const ID_DIGITS = 40;
const READ_ONLY = "READONLY You can't write against a read only replica.";
const OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
/** Redis says so of writes and of PING while it cannot save a snapshot. */
const DISK_FULL =
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk. Commands that may modify the data set are disabled.';
const LOADING = 'LOADING Redis is loading the dataset in memory';

/** What scripts may call, too. */
const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries<Command>({
    ...KEY_COMMANDS,
    ...COLLECTION_COMMANDS,
    ...LIST_COMMANDS,
    ...SORTED_SET_COMMANDS,
    ...STREAM_COMMANDS,
    TIME: {
      arity: 1,
      isForLoading: true,
      run: ({ database: { nowMicros } }) => [
        String(Math.floor(nowMicros / 1e6)),
        String(nowMicros % 1e6),
      ],
    },
    PUBLISH: {
      arity: 3,
      isForLoading: true,
      run: (context, [, channel = '', message = '']) => context.publish(channel, message),
    },
  }),
);

/** About a connection, or the server as a whole: not for scripts. */
interface OuterCommand {
  readonly arity: number;
  readonly writes?: 'shrink';
  readonly isForLoading?: boolean;
  /** A connection that listens may say it. */
  readonly isForListeners?: boolean;
  run(client: SimClient, args: readonly string[]): Value;
}

/**
 * One redis-server: its data, its clock, its scripts, who listens. It carries out each command at
 * once and whole, with time standing still meanwhile. Scripts are not imitated but run, from their
 * sources.
 */
export class SimRedis {
  /** Commands that may need memory are refused. */
  isOutOfMemory = false;
  /** It cannot save its data: every write is refused, not only what needs memory. */
  isDiskFull = false;
  /** It is a replica. */
  isReadOnly = false;
  isLoading = false;
  readonly #parts: SimRedisParts;
  readonly #database: Database;
  readonly #context: CommandContext;
  readonly #scripting = new Scripting();
  readonly #clients = new Set<SimClient>();
  readonly #listeners = new Map<string, Set<SimClient>>();
  readonly #outerCommands: ReadonlyMap<string, OuterCommand>;
  /** `maxmemory-policy`, as INFO says it. */
  evictionPolicy = 'noeviction';
  #runId = '';
  #replicationId = '';
  #startedAtMs: number;

  constructor(parts: SimRedisParts) {
    this.#parts = parts;
    this.#database = new Database(() => parts.nowMs());
    this.#context = {
      database: this.#database,
      publish: (channel, message) => this.#publish(channel, message),
    };
    this.#outerCommands = this.#ownCommands();
    this.#startedAtMs = parts.wallMs();
    this.#replace();
  }

  get runId(): string {
    return this.#runId;
  }

  get replicationId(): string {
    return this.#replicationId;
  }

  /**
   * A client connects; what is published on the channels it subscribes to is pushed to it as the
   * wire would have it.
   */
  connect(push: (reply: Reply) => void): SimClient {
    const client = new SimClient(push);
    this.#clients.add(client);
    return client;
  }

  /** May be called again. */
  disconnect(client: SimClient): void {
    client.isConnected = false;
    this.#clients.delete(client);
    for (const channel of client.channels) this.#unlisten(client, channel);
  }

  /** Carries out one command, and gives what the wire would: errors as values. */
  execute(client: SimClient, args: readonly string[]): Reply {
    if (!client.isConnected) throw new Error('this client is not connected any more');
    this.#tick();
    return asReply(this.#answer(client, args));
  }

  /** FLUSHALL. */
  flush(): void {
    this.#database.clear();
  }

  /** SCRIPT FLUSH: from now on it does not know what a digest stands for. */
  flushScripts(): void {
    this.#scripting.forget();
  }

  /**
   * Restarts: with its data as it was `lostMs` ago, at most `LOSS_MS`, or without any. Its clients
   * are gone, and so are its scripts; run id and replication id are others.
   */
  restart(kind: 'empty' | { lostMs: number }): void {
    if (kind === 'empty') {
      this.#database.clear();
      this.#database.journal.clear();
    } else {
      this.#database.journal.undoLast(kind.lostMs);
    }
    this.#startedAtMs = this.#parts.wallMs();
    this.#replace();
  }

  /**
   * A replica that lagged takes over, with the data it had. It has been up for as long, but is
   * another process.
   */
  failover(lagMs: number): void {
    this.#database.journal.undoLast(lagMs);
    this.#replace();
  }

  /**
   * The same process has its data as it was `ms` ago, at most `LOSS_MS`: a backup was loaded, or
   * databases swapped.
   */
  rewind(ms: number): void {
    this.#database.journal.undoLast(ms);
  }

  /**
   * It has followed another server up to now, and is promoted: the same process with the other's
   * data and a new history.
   */
  promoteAsReplicaOf(primary: SimRedis): void {
    this.#database.copyFrom(primary.#database);
    this.#replicationId = this.#parts.random.hex(ID_DIGITS);
  }

  /** Some keys are gone. */
  lose(pick: (key: string) => boolean): void {
    for (const key of [...this.keys()]) if (pick(key)) this.#database.remove(key);
  }

  get size(): number {
    return [...this.keys()].length;
  }

  *keys(): IterableIterator<string> {
    this.#tick();
    for (const [key] of this.#database.walk()) yield key;
  }

  /** Another process, which nobody is connected to and which knows no scripts. */
  #replace(): void {
    this.#runId = this.#parts.random.hex(ID_DIGITS);
    this.#replicationId = this.#parts.random.hex(ID_DIGITS);
    this.flushScripts();
    for (const client of this.#clients) this.disconnect(client);
  }

  #tick(): void {
    this.#database.nowMicros = Math.round(this.#parts.wallMs() * 1_000);
    this.#database.nowMs = Math.floor(this.#database.nowMicros / 1_000);
  }

  #answer(client: SimClient, args: readonly string[]): Value {
    const name = (args[0] ?? '').toUpperCase();
    const outer = this.#outerCommands.get(name);
    const inner = COMMANDS.get(name);
    const command = outer ?? inner;
    if (command === undefined) throw new NotSimulatedError(args.join(' ').slice(0, 100));
    if (!hasArity(command.arity, args))
      return new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    if (this.isOutOfMemory && command.writes === 'grow') return new ReplyError(OUT_OF_MEMORY);
    if (this.isDiskFull && (command.writes !== undefined || name === 'PING'))
      return new ReplyError(DISK_FULL);
    if (this.isReadOnly && command.writes !== undefined) return new ReplyError(READ_ONLY);
    if (client.channels.size > 0 && !outer?.isForListeners) return deafTo(name);
    if (this.isLoading && !command.isForLoading) return new ReplyError(LOADING);
    if (inner !== undefined) return this.#run(inner, args);
    try {
      return outer?.run(client, args) ?? null;
    } catch (error) {
      return asError(error);
    }
  }

  /** How one script's commands are carried out: once it has written, it is not stopped half way. */
  #forScript(): (args: string[]) => Value {
    let hasWritten = false;
    return (args) => {
      const name = args[0] ?? '';
      const command = COMMANDS.get(name) ?? COMMANDS.get(name.toUpperCase());
      if (command === undefined) return this.#unknownToScripts(name);
      if (!hasArity(command.arity, args))
        return new ReplyError('ERR Wrong number of args calling Redis command from script');
      if (command.writes !== undefined && !hasWritten) {
        if (this.isDiskFull) return new ReplyError(DISK_FULL);
        if (this.isReadOnly) return new ReplyError(READ_ONLY);
        if (this.isOutOfMemory && command.writes === 'grow') return new ReplyError(OUT_OF_MEMORY);
        hasWritten = true;
      }
      return this.#run(command, args);
    };
  }

  #unknownToScripts(name: string): Value {
    if (this.#outerCommands.has(name.toUpperCase()))
      return new ReplyError('ERR This Redis command is not allowed from script');
    throw new NotSimulatedError(`${name} in a script`);
  }

  #run(command: Command, args: readonly string[]): Value {
    try {
      return command.run(this.#context, args);
    } catch (error) {
      return asError(error);
    }
  }

  #ownCommands(): Map<string, OuterCommand> {
    const evaluate = (_: SimClient, args: readonly string[]) =>
      this.#scripting.evaluate(args, this.#forScript());
    return new Map<string, OuterCommand>([
      ['EVALSHA', { arity: -3, run: evaluate }],
      ['EVAL', { arity: -3, run: evaluate }],
      ['SCRIPT', { arity: -2, run: (_, args) => this.#scripting.manage(args) }],
      ['INFO', { arity: -1, isForLoading: true, run: () => this.#info() }],
      ['PING', { arity: -1, isForListeners: true, run: ping }],
      ['FLUSHALL', { arity: -1, writes: 'shrink', run: () => this.#flushed() }],
      ['SUBSCRIBE', { arity: -2, isForLoading: true, isForListeners: true, run: this.#subscribe }],
      [
        'UNSUBSCRIBE',
        { arity: -1, isForLoading: true, isForListeners: true, run: this.#unsubscribe },
      ],
    ]);
  }

  #info(): Value {
    const [now, started] = [this.#database.nowMs, this.#startedAtMs];
    return infoText({
      runId: this.#runId,
      replicationId: this.#replicationId,
      evictionPolicy: this.evictionPolicy,
      // In whole seconds of a wall clock that may have been set since.
      upSeconds: Math.floor(now / 1_000) - Math.floor(started / 1_000),
      isReplica: this.isReadOnly,
      appendOnly: this.#parts.appendOnly ?? false,
    });
  }

  #flushed(): Value {
    this.flush();
    return OK;
  }

  readonly #subscribe = (client: SimClient, args: readonly string[]): Value => {
    const channel = onlyChannel(args);
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(client));
    client.channels.add(channel);
    return ['subscribe', channel, client.channels.size];
  };

  readonly #unsubscribe = (client: SimClient, args: readonly string[]): Value => {
    const channel = onlyChannel(args);
    this.#unlisten(client, channel);
    return ['unsubscribe', channel, client.channels.size];
  };

  #unlisten(client: SimClient, channel: string): void {
    client.channels.delete(channel);
    const listeners = this.#listeners.get(channel);
    listeners?.delete(client);
    if (listeners?.size === 0) this.#listeners.delete(channel);
  }

  #publish(channel: string, message: string): number {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined) return 0;
    for (const { push } of listeners) push(['message', channel, message]);
    return listeners.size;
  }
}

function onlyChannel(args: readonly string[]): string {
  const [name, channel] = args;
  // Each would be answered by itself.
  if (channel === undefined || args.length > 2)
    throw new NotSimulatedError(`${name} but of one channel`);
  return channel;
}

function ping(client: SimClient, [, text, ...more]: readonly string[]): Value {
  if (more.length > 0) throw new ReplyError("ERR wrong number of arguments for 'ping' command");
  if (client.channels.size > 0) return ['pong', text ?? ''];
  return text ?? new Status('PONG');
}

function deafTo(name: string): ReplyError {
  const only = '(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET';
  return new ReplyError(
    `ERR Can't execute '${name.toLowerCase()}': only ${only} are allowed in this context`,
  );
}

function asError(error: unknown): ReplyError {
  if (error instanceof ReplyError) return error;
  throw error;
}
