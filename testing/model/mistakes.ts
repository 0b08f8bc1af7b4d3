/** What `npm run model` checks: worlds of `lease.pml`, and mistakes that it makes in them. */

/** How much may happen; each is a name that `lease.pml` takes from here. */
export interface ModelWorld {
  readonly KEYS: 1 | 2;
  /** Requests under way at once, of all clients. */
  readonly CALLS: number;
  /** 1: requests may go astray, and be carried out late. */
  readonly STRAYS: 0 | 1;
  readonly LOSSES: number;
  readonly FAILOVERS: number;
  /** How many clients have a keepalive. */
  readonly SESSIONS: number;
  /** 1: leases are transferred, and revoked. */
  readonly HANDOVERS: 0 | 1;
  readonly GUARDING: 0 | 1;
}

export interface NamedWorld {
  readonly name: string;
  readonly about: string;
  readonly world: ModelWorld;
}

const LOSSY = { CALLS: 1, LOSSES: 1, FAILOVERS: 1 } as const;
const PLAIN = { ...LOSSY, STRAYS: 0, SESSIONS: 0, HANDOVERS: 0, GUARDING: 0 } as const;

/** The smallest one; a test checks it. */
export const SMALL: ModelWorld = { ...PLAIN, KEYS: 1 };

/** All of them together are what the model promises. */
export const WORLDS: readonly NamedWorld[] = [
  {
    name: 'two keys, leases',
    about: 'three clients take, renew and release two keys',
    world: { ...PLAIN, KEYS: 2 },
  },
  {
    name: 'two keys, handovers',
    about: 'hand them over, have them revoked, and guard transactions; no failover',
    world: { ...PLAIN, KEYS: 2, FAILOVERS: 0, HANDOVERS: 1, GUARDING: 1 },
  },
  {
    name: 'two keys, a session',
    about: 'one client renews both by one keepalive',
    world: { ...PLAIN, KEYS: 2, SESSIONS: 1 },
  },
  {
    name: 'one key, everything',
    about: 'all of that on one key, three sessions, and requests that are carried out late',
    world: { ...LOSSY, KEYS: 1, STRAYS: 1, SESSIONS: 3, HANDOVERS: 1, GUARDING: 1 },
  },
];

export interface Mistake {
  /** Its switch in `lease.pml`. */
  readonly name: string;
  readonly about: string;
  /** Where it shows soonest. */
  readonly world: ModelWorld;
}

const quiet: ModelWorld = { ...SMALL, LOSSES: 0, FAILOVERS: 0 };
const losing: ModelWorld = { ...SMALL, FAILOVERS: 0 };
const failing: ModelWorld = { ...SMALL, LOSSES: 0 };

export const MISTAKES: readonly Mistake[] = [
  {
    name: 'NO_GUARD_MARGIN',
    about: 'a lease is used up to its last moment, although clocks do not run alike',
    world: quiet,
  },
  {
    name: 'DEADLINE_FROM_REPLY',
    about: 'the TTL counts from when the answer came, not from when the request was sent',
    world: quiet,
  },
  {
    name: 'LATE_RENEWAL_SHORTENS',
    about: 'a late renewal of an earlier lease shortens the newer one of the same holder',
    world: { ...quiet, STRAYS: 1 },
  },
  {
    name: 'QUARANTINE_TOO_SHORT',
    about: 'a store that lost its data grants before every lease from before has ended',
    world: losing,
  },
  {
    name: 'QUARANTINE_BY_OWN_TTL',
    about: 'a client waits for as long as the TTLs that it knows, which may be the short ones',
    world: losing,
  },
  {
    name: 'FAILBACK_UNNOTICED',
    about: 'an address leads back to an old server, and nobody minds',
    world: failing,
  },
  {
    name: 'ERA_NOT_COMPARED',
    about: 'only new connections look for a loss; an acquire does not name the era',
    world: losing,
  },
  {
    name: 'CLAIM_BY_NAME',
    about: 'in a quarantine a client may claim what the store has in its name, from before, too',
    world: { ...failing, HANDOVERS: 1 },
  },
  {
    name: 'RELEASE_UNCHECKED',
    about: 'a release deletes the key, whoever has it by then',
    world: { ...quiet, STRAYS: 1 },
  },
  {
    name: 'TRANSFER_KEEPS_FENCE',
    about: 'the successor has the fence of the lease that was handed over',
    world: { ...quiet, HANDOVERS: 1 },
  },
  {
    name: 'REVOKE_FREES_AT_ONCE',
    about: 'a revoked key is granted while its holder may still act',
    world: { ...quiet, HANDOVERS: 1 },
  },
  {
    name: 'WORKS_WHILE_IT_RELEASES',
    about: 'the store is told that a lease is over before its work has stopped',
    world: quiet,
  },
  {
    name: 'BURIED_SESSION_RENEWED',
    about: 'a keepalive that is over is renewed, and its holder believes in all its leases',
    world: { ...losing, SESSIONS: 1 },
  },
  {
    name: 'DETACHMENT_NOT_TOLD',
    about: 'a holder is not told that a lease has left its keepalive',
    world: { ...quiet, SESSIONS: 1, HANDOVERS: 1 },
  },
  {
    name: 'SESSION_SURVIVES_LOSS',
    about: 'a keepalive is renewed by a store that has lost the leases on it',
    world: { ...losing, SESSIONS: 1 },
  },
  {
    name: 'GUARD_WITHOUT_ROW_LOCK',
    about: 'a guard looks at the fence, and does not lock the row until the commit',
    world: { ...quiet, GUARDING: 1 },
  },
];

/** What spin is given: each name of the world, and each mistake as 0 or 1. */
export function definitions(world: ModelWorld, mistake: string | null): string[] {
  const chosen = MISTAKES.map(({ name }) => `-D${name}=${name === mistake ? 1 : 0}`);
  return [...Object.entries(world).map(([name, value]) => `-D${name}=${value}`), ...chosen];
}
