import type { FaultProxy } from '../../../testing/fakes/fault-proxy.ts';
import type { Child, Message } from '../../support/child.ts';

const TELL_DEADLINE_MS = 20_000;

/** One process of a fleet under test. */
export class Member {
  readonly id: string;
  readonly child: Child;
  readonly weight: number;
  /** When it had opened its store, and was about to take part. */
  readonly readyMs: number;
  /** What stands between it and its Redis, where it was asked for. */
  readonly proxy: FaultProxy | undefined;

  constructor(parts: {
    id: string;
    child: Child;
    weight: number;
    readyMs: number;
    proxy?: FaultProxy;
  }) {
    this.id = parts.id;
    this.child = parts.child;
    this.weight = parts.weight;
    this.readyMs = parts.readyMs;
    this.proxy = parts.proxy;
  }

  /** Tells it what to do, and waits for what came of it. */
  async tell(what: string, facts: object = {}): Promise<Message> {
    this.child.send({ do: what, ...facts });
    const answer = await this.child.next(what, TELL_DEADLINE_MS);
    if (answer.error !== undefined) throw new Error(`${what}: ${answer.message ?? answer.error}`);
    return answer;
  }

  /** The targets it believes it may poll. */
  async owned(): Promise<string[]> {
    return (await this.tell('status')).owned as string[];
  }

  /** What it has told under that name since it started. */
  told(event: string): Message[] {
    return this.child.received.filter((message) => message.event === event);
  }
}
