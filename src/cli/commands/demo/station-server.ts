/** A dozen weather stations, made up by one server. Each is a target. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../../../core/random.ts';
import type { Holdfast } from '../../../holdfast.ts';

export const CITIES: readonly string[] = [
  'athens',
  'bergen',
  'cairo',
  'delhi',
  'esbjerg',
  'fez',
  'geneva',
  'havana',
  'istanbul',
  'jakarta',
  'kyoto',
  'lima',
];
const COLDEST = 10;
const RANGE = 15;

export class StationServer {
  readonly #random: Random;
  readonly #degrees: Map<string, number>;
  readonly #server: Server;

  constructor(random: Random) {
    this.#random = random;
    this.#degrees = new Map(CITIES.map((city) => [city, COLDEST + random.next() * RANGE]));
    this.#server = createServer(({ url = '' }, response) => {
      const celsius = this.read(url.slice(1));
      response.setHeader('content-type', 'application/json');
      if (celsius === null) response.writeHead(404).end('{}');
      else response.end(JSON.stringify({ city: url.slice(1), celsius }));
    });
  }

  /** The temperature now; null if there is no such station. */
  read(city: string): number | null {
    const before = this.#degrees.get(city);
    if (before === undefined) return null;
    const now = before + this.#random.next() - 0.5;
    this.#degrees.set(city, now);
    return Math.round(now * 10) / 10;
  }

  /** Serves the stations on a free port of this host, and adds them as targets. */
  async open({ targets }: Holdfast): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const { port } = this.#server.address() as AddressInfo;
    await targets.addAll(
      CITIES.map((city) => ({ id: city, url: `http://127.0.0.1:${port}/${city}` })),
    );
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
