/**
 * The secrets that idempotency keys are made with: the current one, and those that sessions may have been started under. All
 * instances must know the same, or the same request would start two sessions.
 *
 * They come from the configuration. Without any, one is made, once for all instances, and kept in the store. The store also remembers, as
 * a fingerprint, which secret was configured last: so an instance without, beside others that have one, is told.
 */
import { createHmac } from 'node:crypto';
import { ConfigError, RevisionConflictError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Random } from '../core/random.ts';
import type { Store } from '../store/port/store.ts';
import { SecretMissingError } from './errors.ts';

export interface SecretOptions {
  /** At least 32 bytes; the same for all instances. */
  secret?: string;
  /** The one before, until all sessions that were started with it have ended. */
  previousSecret?: string;
}

const COLLECTION = 'secret';
const ID = 'idempotency';
const SHORTEST_BYTES = 32;
/** 32 bytes. */
const MADE_DIGITS = 64;
/** What messages say instead. */
const HIDDEN = 'a secret';
const CALL = { timeoutMs: 2_000 };
/** Who was slower than another looks again; nothing changes it more often than somebody starts an instance. */
const MOST_TRIES = 5;

/** What the store keeps of it: a secret that was made, or what one that was configured is recognised by. */
interface Kept {
  readonly secret?: string;
  readonly fingerprint?: string;
}

interface SecretsParts {
  readonly store: Store;
  readonly random: Random;
  readonly events: Emitter;
}

export class Secrets {
  readonly #parts: SecretsParts;
  readonly #current: string | null;
  readonly #previous: string | null;
  /** Made here or found in the store: put back should the store forget it. */
  #made: string | null = null;
  #found: Promise<readonly Buffer[]> | null = null;
  #isMissing = false;

  constructor(parts: SecretsParts, { secret, previousSecret }: SecretOptions) {
    checkSecret('secret', secret);
    checkSecret('previousSecret', previousSecret);
    if (secret === undefined && previousSecret !== undefined) {
      const rule = 'there is no current secret beside it: set that, too';
      throw new ConfigError({ field: 'previousSecret', value: HIDDEN, rule });
    }
    this.#parts = parts;
    this.#current = secret ?? null;
    this.#previous = previousSecret ?? null;
    const askAgain = () => {
      this.#found = null;
    };
    parts.events.on('store.forgot', askAgain);
    // Only one instance is told that the store has forgotten. But when it was restarted without its data, all lose their connection; and
    // whoever comes first may have made another secret.
    if (secret === undefined) parts.events.on('store.disconnected', askAgain);
  }

  /** Others have one, and this instance has none. As far as is known: it is found out when secrets are asked for. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** The current one first. Asks the store once; after a failure, again. */
  all(): Promise<readonly Buffer[]> {
    this.#found ??= this.#find().catch((error: unknown) => {
      this.#found = null;
      throw error;
    });
    return this.#found;
  }

  /**
   * Asks once more, should what was made here or elsewhere have been lost without a trace: two instances would go on with a secret
   * each. Until the store has answered, what is known counts. What is configured is not lost.
   */
  async refresh(): Promise<void> {
    if (this.#current !== null) return;
    this.#found = Promise.resolve(await this.#find());
  }

  async #find(): Promise<readonly Buffer[]> {
    let seen = 0;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { kept, revision } = await this.#read();
      seen = revision;
      this.#isMissing = this.#current === null && kept.secret === undefined && !!kept.fingerprint;
      if (this.#isMissing) throw new SecretMissingError({});
      const next = this.#toKeep(kept);
      if (next === null) return this.#secretsBeside(kept);
      if (await this.#write(next, revision)) return this.#secretsBeside(next);
    }
    throw new RevisionConflictError({
      ...{ resource: `${COLLECTION}:${ID}`, expected: seen, found: seen + 1 },
    });
  }

  async #read(): Promise<{ kept: Kept; revision: number }> {
    const [reply] = await this.#parts.store.records.get(COLLECTION, [ID], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return { kept: {}, revision: 0 };
    return { kept: keptOf(reply.value), revision: reply.revision };
  }

  /** Null: what is kept is right as it is. */
  #toKeep(kept: Kept): Kept | null {
    // It stays, also once others are configured: their keys are made with it as well, so that who has nothing else finds the same sessions.
    if (kept.secret !== undefined) return null;
    if (this.#current === null) {
      this.#made ??= this.#parts.random.hex(MADE_DIGITS);
      return { secret: this.#made };
    }
    const fingerprint = fingerprintOf(this.#current);
    if (kept.fingerprint === fingerprint) return null;
    const before = this.#previous === null ? undefined : fingerprintOf(this.#previous);
    if (kept.fingerprint !== undefined && kept.fingerprint !== before)
      this.#parts.events.emit('secret.differs', {});
    return { fingerprint };
  }

  /** False where another was faster. */
  async #write(value: Kept, ifRevision: number): Promise<boolean> {
    const { store, events } = this.#parts;
    const [reply] = await store.records.put(COLLECTION, [{ id: ID, value, ifRevision }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    const isWritten = reply?.kind === 'written';
    if (isWritten && value.secret !== undefined) events.emit('secret.created', {});
    return isWritten;
  }

  #secretsBeside({ secret }: Kept): readonly Buffer[] {
    this.#made = secret ?? this.#made;
    const known = [this.#current, this.#previous, secret].filter(
      (text) => typeof text === 'string',
    );
    return [...new Set(known)].map((text) => Buffer.from(text));
  }
}

function checkSecret(field: string, secret: unknown): void {
  if (secret === undefined) return;
  const isLong = typeof secret === 'string' && Buffer.byteLength(secret) >= SHORTEST_BYTES;
  const rule = `a secret (HOLDFAST_IDEM_SECRET, and …_PREVIOUS) is text of at least ${SHORTEST_BYTES} bytes; make one with: openssl rand -hex 32`;
  if (!isLong) throw new ConfigError({ field, value: HIDDEN, rule });
}

/** Others may write there, too. */
function keptOf(value: unknown): Kept {
  const { secret, fingerprint } = (value ?? {}) as Record<string, unknown>;
  return {
    ...(typeof secret === 'string' && { secret }),
    ...(typeof fingerprint === 'string' && { fingerprint }),
  };
}

function fingerprintOf(secret: string): string {
  return createHmac('sha256', secret).update('holdfast fingerprint').digest('hex').slice(0, 32);
}
