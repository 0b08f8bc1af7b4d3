import type { Call } from '../../port/store.ts';
import type { PostgresConnection } from '../postgres-connection.ts';
import { type Argument, statement } from '../statement.ts';

/** A hint as a function returns it: the topic, with its prefix, and the message. */
export type ReturnedHint = readonly [topic: string, message: string];

export interface FunctionCall extends Call {
  /** False where a crash of the server may undo it. Default true. */
  readonly isDurable?: boolean;
}

/** A reply with the hints that follow from it. */
type Hinting<R> = R & { readonly hints?: readonly ReturnedHint[] };

/** The functions of the schema, over one connection, or over the least busy of several. */
export class FunctionConnection {
  readonly #connections: readonly PostgresConnection[];
  readonly #schema: string;
  readonly scope: string;
  readonly #send: (hints: readonly ReturnedHint[]) => void;

  /** `send` sends the hints that a function returns, after its transaction has committed. */
  constructor(
    connections: readonly PostgresConnection[],
    schema: string,
    scope: string,
    send: (hints: readonly ReturnedHint[]) => void,
  ) {
    this.#connections = connections;
    this.#schema = schema;
    this.scope = scope;
    this.#send = send;
  }

  /** Calls a function with a request in this store's scope. */
  call<R>(operation: string, name: string, request: object, call: FunctionCall): Promise<R> {
    return this.callWith(operation, name, JSON.stringify({ scope: this.scope, ...request }), call);
  }

  /** Calls a function that takes arguments of its own. */
  async callWith<R>(
    operation: string,
    name: string,
    args: string | readonly Argument[],
    call: FunctionCall,
  ): Promise<R> {
    const { timeoutMs, isDurable = true } = call;
    const sql = statement(name, args, { schema: this.#schema, timeoutMs, isDurable });
    return JSON.parse((await this.#leastBusy().run(operation, sql, timeoutMs)) ?? 'null') as R;
  }

  /** Calls a function whose reply may have hints, and sends these. */
  async ask<R extends object>(
    operation: string,
    name: string,
    request: object,
    call: Call,
  ): Promise<R> {
    const { hints = [], ...rest } = await this.call<Hinting<R>>(operation, name, request, call);
    this.send(hints);
    const reply: object = rest;
    return reply as R;
  }

  /** The first of equals: a process that does one thing at a time has one connection. */
  #leastBusy(): PostgresConnection {
    return this.#connections.reduce((best, one) => (one.load < best.load ? one : best));
  }

  send(hints: readonly ReturnedHint[]): void {
    if (hints.length > 0) this.#send(hints);
  }
}
