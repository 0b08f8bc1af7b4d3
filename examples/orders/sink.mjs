/**
 * What the orders are about: a warehouse, a bank, whatever has effects that must not happen twice. It remembers the keys of what it
 * has applied, and the highest fence it has seen of each order; and it keeps a ledger, from which everything is proved at the end.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { FenceGate, fenceFromHeaders } from 'holdfast';
import { STEPS } from './steps.mjs';

export class Sink {
  /** All that came in, with what became of it. */
  ledger = [];
  #isNaive;
  #gate = new FenceGate();
  #keys = new Set();
  #server = null;

  /** A naive one applies whatever it is told. */
  constructor({ isNaive }) {
    this.#isNaive = isNaive;
  }

  /**
   * Serves until it is closed; says where. `onEffect(effect, apply)` is asked about each: it may apply it, or not, and nobody is answered if
   * it returns nothing.
   */
  async serve(onEffect) {
    this.#server = createServer(async (request, response) => {
      const wanted = await json(request).catch(() => null);
      // Whoever sent it was killed before all of it was here.
      if (wanted === null) return request.destroy();
      const effect = {
        ...wanted,
        key: request.headers['idempotency-key'],
        fence: fenceFromHeaders(request.headers),
      };
      const outcome = onEffect(effect, () => this.#take(effect));
      if (outcome === undefined) return request.destroy();
      return response.end(JSON.stringify({ outcome }));
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  close() {
    this.#server?.close();
    this.#server?.closeAllConnections();
  }

  get applied() {
    return this.ledger.filter(({ outcome }) => outcome === 'applied');
  }

  /** What the ledger says against each order's steps having been applied once, one after the other; nothing if they were. */
  objections(orders) {
    const steps = new Map(orders.map((order) => [order, []]));
    for (const { order, step } of this.applied) steps.get(order)?.push(step);
    return [...steps]
      .filter(([, applied]) => String(applied) !== String(STEPS))
      .map(([order, applied]) => `${order}: ${applied.join(', ') || 'nothing'}`);
  }

  #take(effect) {
    const outcome = this.#isNaive ? 'applied' : this.#judge(effect);
    this.#keys.add(effect.key);
    this.ledger.push({ ...effect, outcome });
    return outcome;
  }

  #judge({ order, key, fence }) {
    try {
      this.#gate.pass(order, fence);
    } catch {
      return 'stale';
    }
    return this.#keys.has(key) ? 'known' : 'applied';
  }
}
