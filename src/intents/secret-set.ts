/**
 * The secrets of idempotency keys: the current one, and earlier ones that open sessions were
 * started with. All instances must have the same secrets, or the same request would start two
 * sessions.
 *
 * Secrets are configured. Without a configured one, the first instance generates a secret and puts
 * it into the store. The store also keeps a fingerprint of the configured secret: an instance
 * without one then throws `SECRET_MISSING`.
 */
import { createHmac } from 'node:crypto';
import { ConfigError, RevisionConflictError } from '../core/errors.ts';
import type { Runtime } from '../store/runtime.ts';
import { SecretMissingError } from './errors.ts';

export interface SecretOptions {
  /** At least 32 bytes; the same for all instances. */
  secret?: string;
  /** The secret before, until all sessions that were started with it have ended. */
  previousSecret?: string;
}

const COLLECTION = 'secret';
const ID = 'idempotency';
const MIN_BYTES = 32;
/** 32 bytes. */
const GENERATED_DIGITS = 64;
/** Stands for a secret in messages. */
const HIDDEN = 'a secret';
const CALL = { timeoutMs: 2_000 };
/** The record only changes when an instance starts, so few tries lose against another instance. */
const MAX_TRIES = 5;

/** The record in the store: a generated secret, or the fingerprint of a configured one. */
interface StoredSecret {
  readonly secret?: string | undefined;
  readonly fingerprint?: string | undefined;
}

export class SecretSet {
  readonly #rt: Runtime;
  readonly #current: string | null;
  readonly #previous: string | null;
  /** Generated here, or read from the store: put back if the store loses it. */
  #generated: string | null = null;
  #secrets: Promise<readonly Buffer[]> | null = null;
  #isMissing = false;

  constructor(rt: Runtime, { secret, previousSecret }: SecretOptions) {
    checkSecret('secret', secret);
    checkSecret('previousSecret', previousSecret);
    if (secret === undefined && previousSecret !== undefined) {
      const rule = 'it needs a current secret beside it: set secret (HOLDFAST_IDEM_SECRET), too';
      throw new ConfigError({ field: 'previousSecret', value: HIDDEN, rule });
    }
    this.#rt = rt;
    this.#current = secret ?? null;
    this.#previous = previousSecret ?? null;
    const askAgain = () => {
      this.#secrets = null;
    };
    rt.events.on('store.forgot', askAgain);
    // Only one instance gets `store.forgot`. But when the store restarts without its data, all
    // instances lose their connection, and the first one may have generated another secret.
    if (secret === undefined) rt.events.on('store.disconnected', askAgain);
  }

  /** Whether other instances have a secret and this one has none, as of the last read. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** The current secret first. Reads the store once; after a failure, again. */
  all(): Promise<readonly Buffer[]> {
    this.#secrets ??= this.#find().catch((error: unknown) => {
      this.#secrets = null;
      throw error;
    });
    return this.#secrets;
  }

  /**
   * Reads the store again, in case it lost a generated secret unnoticed: two instances would use
   * different secrets. Until the store answers, the known secrets count. A configured secret cannot
   * be lost.
   */
  async refresh(): Promise<void> {
    if (this.#current !== null) return;
    this.#secrets = Promise.resolve(await this.#find());
  }

  async #find(): Promise<readonly Buffer[]> {
    let lastRevision = 0;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { stored, revision } = await this.#read();
      lastRevision = revision;
      this.#isMissing =
        this.#current === null && stored.secret === undefined && !!stored.fingerprint;
      if (this.#isMissing) throw new SecretMissingError({});
      const next = this.#nextRecord(stored);
      if (next === null) return this.#allWith(stored);
      if (await this.#write(next, revision)) return this.#allWith(next);
    }
    throw new RevisionConflictError({
      resource: `${COLLECTION}:${ID}`,
      expected: lastRevision,
      found: lastRevision + 1,
    });
  }

  async #read(): Promise<{ stored: StoredSecret; revision: number }> {
    const [reply] = await this.#rt.store.records.get(COLLECTION, [ID], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'found') return { stored: {}, revision: 0 };
    return { stored: storedSecretOf(reply.value), revision: reply.revision };
  }

  /** Null: the record needs no change. */
  #nextRecord(stored: StoredSecret): StoredSecret | null {
    // A generated secret stays even after one is configured: keys are made with both, so that an
    // instance that only has the generated secret finds the same sessions.
    if (stored.secret !== undefined) return null;
    if (this.#current === null) {
      this.#generated ??= this.#rt.random.hex(GENERATED_DIGITS);
      return { secret: this.#generated };
    }
    const fingerprint = fingerprintOf(this.#current);
    if (stored.fingerprint === fingerprint) return null;
    const before = this.#previous === null ? undefined : fingerprintOf(this.#previous);
    if (stored.fingerprint !== undefined && stored.fingerprint !== before)
      this.#rt.events.emit('secret.differs', {});
    return { fingerprint };
  }

  /** False if another instance changed the record first. */
  async #write(value: StoredSecret, ifRevision: number): Promise<boolean> {
    const { store, events } = this.#rt;
    const [reply] = await store.records.put(COLLECTION, [{ id: ID, value, ifRevision }], CALL);
    if (reply?.kind === 'failed') throw reply.error;
    const isWritten = reply?.kind === 'written';
    if (isWritten && value.secret !== undefined) events.emit('secret.created', {});
    return isWritten;
  }

  #allWith({ secret }: StoredSecret): readonly Buffer[] {
    this.#generated = secret ?? this.#generated;
    const known = [this.#current, this.#previous, secret].filter(
      (text) => typeof text === 'string',
    );
    return [...new Set(known)].map((text) => Buffer.from(text));
  }
}

function checkSecret(field: string, secret: unknown): void {
  if (secret === undefined) return;
  const isLong = typeof secret === 'string' && Buffer.byteLength(secret) >= MIN_BYTES;
  const rule = `a secret (HOLDFAST_IDEM_SECRET, and …_PREVIOUS) is text of at least ${MIN_BYTES} bytes; make one with: openssl rand -hex 32`;
  if (!isLong) throw new ConfigError({ field, value: HIDDEN, rule });
}

/** Other programs may write there, too. */
function storedSecretOf(value: unknown): StoredSecret {
  const { secret, fingerprint } = (value ?? {}) as Record<string, unknown>;
  const textOf = (field: unknown) => (typeof field === 'string' ? field : undefined);
  return { secret: textOf(secret), fingerprint: textOf(fingerprint) };
}

function fingerprintOf(secret: string): string {
  return createHmac('sha256', secret).update('holdfast fingerprint').digest('hex').slice(0, 32);
}
