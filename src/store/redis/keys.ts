import { checkPrefix } from '../port/prefix.ts';
import { workflowKey } from '../port/workflow-store.ts';

const WORKFLOW_LEASE = workflowKey('');

/**
 * Names in Redis. A lease lives under its plain name, so that another program can share it. Its
 * sibling keys are named by the scripts only (`lua/lib/siblings.lua`).
 */
export type Keys = ReturnType<typeof keysOf>;

export function keysOf(prefix: string) {
  checkPrefix(prefix);
  // Streams, workflows and intents share one hash tag, so that they lie on one server.
  const hub = prefix.includes('{') ? prefix : `{${prefix}holdfast}:`;
  const lease = (key: string) => (key.startsWith(WORKFLOW_LEASE) ? hub : prefix) + key;
  return {
    prefix,
    marker: `${prefix}holdfast:marker`,
    log: `${prefix}holdfast:log`,
    members: `${prefix}poll:nodes`,
    member: (id: string) => `${prefix}poll:node:${id}`,
    record: (collection: string, id: string) => `${prefix}${collection}:${id}`,
    index: (collection: string) => `${prefix}index:${collection}`,
    channel: (topic: string) => `${prefix}signal:${topic}`,
    lease,
    /** A pattern that every lease below a beginning matches, and other keys may match. */
    leases: (beginning: string) => {
      // A short beginning may stand for leases of both kinds.
      const isBoth = WORKFLOW_LEASE.startsWith(beginning) && hub !== prefix;
      if (isBoth) return `*${escapeGlob(prefix)}*${escapeGlob(beginning)}*`;
      return `${escapeGlob(lease(beginning))}*`;
    },
    /**
     * The key that every script about streams, workflows and intents declares.
     * `lua/lib/work-keyspace.lua` names the others from it.
     */
    bus: `${hub}holdfast:bus`,
    /** What the names of all keys of streams, workflows and intents begin with. */
    hub,
    /** A pattern for all keys of streams, workflows and intents. */
    hubKeys: `${hub}*`,
    streams: `${hub}stream:all`,
    deadOf: (stream: string) => `${hub}stream:dead:${stream}`,
    workflows: `${hub}workflow:all`,
    /** A part of a workflow, named as `lua/lib/workflow.lua` names it. */
    workflow: (part: 'unread' | 'results' | 'history', id: string) =>
      `${hub}workflow:${part}:${id}`,
    /** The beginning of every key that `lua/lib/session.lua` names. */
    intents: `${hub}intent:`,
    withoutPrefix: (name: string) => name.slice((name.startsWith(hub) ? hub : prefix).length),
  };
}

/** A key beside a lease or a record, as `lua/lib/siblings.lua` names it. */
export function siblingOf(key: string, what: 'fence' | 'meta' | 'removed'): string {
  return key.includes('{') ? `${what}:${key}` : `${what}:{${key}}`;
}

/** The fence record of a lease: a Cluster needs it declared. */
export function fenceOf(lease: string): string {
  return siblingOf(lease, 'fence');
}

/** The lease of a fence record; null for another name. */
export function leaseOf(fence: string): string | null {
  const name = /^fence:([\s\S]*)$/.exec(fence)?.[1];
  return name === undefined ? null : (/^\{([^{]*)\}$/.exec(name)?.[1] ?? name);
}

/** A pattern that matches this text only. */
export function escapeGlob(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}
