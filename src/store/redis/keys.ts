import { checkPrefix } from '../port/prefix.ts';
import { workflowKey } from '../port/workflow-store.ts';

const WORKFLOW_LEASE = workflowKey('');

/**
 * Names in Redis. A lease lives under its plain name, so that another program can share it; what
 * belongs to it lives in sibling keys, which only the scripts name (`lua/lib/siblings.lua`).
 */
export class Keys {
  readonly prefix: string;
  readonly marker: string;
  /**
   * In front of everything of streams, workflows and intents: one hash tag for all of it, so that
   * it lies on one server.
   */
  readonly #hub: string;

  constructor(prefix: string) {
    checkPrefix(prefix);
    this.prefix = prefix;
    this.marker = `${prefix}holdfast:marker`;
    this.#hub = prefix.includes('{') ? prefix : `{${prefix}holdfast}:`;
  }

  lease(key: string): string {
    return (key.startsWith(WORKFLOW_LEASE) ? this.#hub : this.prefix) + key;
  }

  /** A pattern that every lease below a beginning matches, and maybe others do. */
  leases(beginning: string): string {
    // Short ones may mean leases of both kinds.
    const isBoth = WORKFLOW_LEASE.startsWith(beginning) && this.#hub !== this.prefix;
    if (isBoth) return `*${escapeGlob(this.prefix)}*${escapeGlob(beginning)}*`;
    return `${escapeGlob(this.lease(beginning))}*`;
  }

  /**
   * The key that every script about streams, workflows and intents declares;
   * `lua/lib/work-keyspace.lua` names the others from it.
   */
  get bus(): string {
    return `${this.#hub}holdfast:bus`;
  }

  /** A pattern for all of these. */
  get hubKeys(): string {
    return `${this.#hub}*`;
  }

  /** What `lua/lib/workflow.lua` calls a part of a workflow. */
  workflow(what: 'unread' | 'results' | 'history', id: string): string {
    return `${this.#hub}workflow:${what}:${id}`;
  }

  get workflows(): string {
    return `${this.#hub}workflow:all`;
  }

  /** What everything begins with that `lua/lib/session.lua` names. */
  get intents(): string {
    return `${this.#hub}intent:`;
  }

  deadOf(stream: string): string {
    return `${this.#hub}stream:dead:${stream}`;
  }

  get streams(): string {
    return `${this.#hub}stream:all`;
  }

  record(collection: string, id: string): string {
    return `${this.prefix}${collection}:${id}`;
  }

  index(collection: string): string {
    return `${this.prefix}index:${collection}`;
  }

  member(id: string): string {
    return `${this.prefix}poll:node:${id}`;
  }

  get members(): string {
    return `${this.prefix}poll:nodes`;
  }

  get log(): string {
    return `${this.prefix}holdfast:log`;
  }

  channel(topic: string): string {
    return `${this.prefix}signal:${topic}`;
  }

  withoutPrefix(name: string): string {
    return name.slice((name.startsWith(this.#hub) ? this.#hub : this.prefix).length);
  }
}

/**
 * What `lua/lib/siblings.lua` calls the fence record of a lease, for those who must name it before
 * a script can.
 */
export function fenceOf(lease: string): string {
  return lease.includes('{') ? `fence:${lease}` : `fence:{${lease}}`;
}

/** Text as a pattern that means nothing but itself. */
export function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
