import type { OpenOptions } from '../../../src/index.ts';
import { type Child, type Message, spawnChild } from '../../support/child.ts';

/** Starts `test/children/lessee.mjs` on a store, and waits until it is open. */
export async function startLessee(url: string, options: OpenOptions = {}): Promise<Lessee> {
  const child = spawnChild('lessee.mjs', { args: [url, JSON.stringify(options)] });
  await child.next('ready', 20_000);
  return new Lessee(child);
}

/** A process that does with leases what it is told. */
export class Lessee {
  readonly child: Child;

  constructor(child: Child) {
    this.child = child;
  }

  /** Tells it what to do, and waits for what came of it. */
  async tell(what: string, facts: object = {}, deadlineMs = 20_000): Promise<Message> {
    this.child.send({ do: what, ...facts });
    return this.child.next(what, deadlineMs);
  }

  /** Has it close, and end by itself: whatever kept it alive would be a leak. */
  async end(): Promise<number | null> {
    await this.tell('close', { options: { within: 0 } });
    const { code } = await this.child.exit();
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.child.kill();
  }
}
