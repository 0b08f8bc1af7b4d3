import { type RedisServer, startRedis } from '../../support/redis-server.ts';

/** What stands on pages for a Redis of the reader's. */
const ADDRESSES = /(?:localhost|127\.0\.0\.1|redis\.internal):6379\b|(?<=redis:\/\/)…/g;

/**
 * The Redis that a page's blocks find at `localhost:6379`, `redis.internal:6379` and `redis://…`. It counts as one that
 * has been in use for long: a new one makes nobody wait, who would have to where quarantine is on, as it is for readers.
 */
export class PageRedis {
  readonly #server: RedisServer;
  readonly #prefixes: readonly string[];

  private constructor(server: RedisServer, prefixes: readonly string[]) {
    this.#server = server;
    this.#prefixes = prefixes;
  }

  /** For a page with these texts; undefined if none of them has an address. */
  static async start(texts: readonly string[]): Promise<PageRedis | undefined> {
    const all = texts.join('\n');
    if (all.search(ADDRESSES) === -1) return undefined;
    const named = all.matchAll(/(?:prefix: '|--prefix[ =]'?|HOLDFAST_PREFIX=)([\w.:~/@{}-]+)/g);
    const redis = new PageRedis(await startRedis({ appendonly: true }), [
      '',
      ...[...named].map(([, name]) => name ?? ''),
    ]);
    await redis.renew();
    return redis;
  }

  /** The text with its address in place of well-known ones. */
  rewrite(text: string): string {
    return text.replace(ADDRESSES, `127.0.0.1:${this.#server.port}`);
  }

  /** Empty, and as if used before. */
  async renew(): Promise<void> {
    await this.#server.cli('FLUSHALL');
    const { run_id = '' } = await this.#server.info('server');
    const { master_replid = '' } = await this.#server.info('replication');
    // What examine.lua compares with: it finds the server it knows, which has forgotten nothing since 1970.
    const marker = [
      'origin',
      1,
      'era',
      'docs',
      'run',
      run_id,
      'replication',
      master_replid,
      'since',
      0,
    ];
    for (const prefix of this.#prefixes)
      await this.#server.cli('HSET', `${prefix}holdfast:marker`, ...marker);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}
