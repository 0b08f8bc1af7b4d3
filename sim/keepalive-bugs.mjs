/**
 * Bugs of keepalives: one row that renews all leases of a process. They are looked for in worlds whose store offers these.
 */
const worlds = { kind: 'keepalives', hours: 0.2 };

export const KEEPALIVE_BUGS = [
  {
    name: 'buried keepalive renews',
    about: 'a keepalive that has lapsed, and whose leases were taken over, is renewed all the same',
    worlds,
    patches: [
      {
        file: 'store/memory/memory-keepalive-set.js',
        find: 'const found = this.#alive(id);\n        if (found === undefined || found.version < version)',
        replace:
          'const found = this.#keepalives.get(id) ?? { version, detached: new Map() };\n        this.#keepalives.set(id, found);\n        if (found.version < version)',
      },
    ],
  },
  {
    name: 'lease outlives its keepalive',
    about: 'an attached lease counts as held for as long as the row of its keepalive is there',
    worlds,
    patches: [
      {
        file: 'store/memory/memory-keepalive-set.js',
        find: 'const found = id === null ? undefined : this.#alive(id);\n        return found?.expiresAtMs',
        replace:
          'const found = id === null ? undefined : this.#keepalives.get(id);\n        return (found && found.expiresAtMs + 2_000)',
      },
    ],
  },
  {
    name: 'takeover by the own expiry',
    about:
      'a key is granted when the own expiry of its lease has passed, although its keepalive is alive',
    worlds,
    patches: [
      {
        file: 'store/memory/leases.js',
        find: 'return Math.max(expiresAtMs, this.#keepalives.expiresAtMs(keepalive));',
        replace: 'return expiresAtMs;',
      },
    ],
  },
  {
    name: 'revocation without a detachment',
    about: 'the keepalive is not told that a lease was taken away, so its holder believes in it',
    worlds,
    patches: [
      {
        file: 'store/memory/leases.js',
        find: 'this.#keepalives.detach(lease.keepalive, key);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'tombstone for the own time',
    about: 'a revoked lease is free when its own expiry has passed, while its holder may still act',
    worlds,
    patches: [
      {
        file: 'store/memory/leases.js',
        find: 'this.#set(key, TOMBSTONE, this.#clock.monotonicMs() + this.expiresInMs(key));',
        replace: 'this.#set(key, TOMBSTONE, this.#leases.get(key).expiresAtMs);',
      },
    ],
  },
  {
    name: 'detachment ignored',
    about: 'a holder counts the renewal of its keepalive for a lease that is no longer attached',
    worlds,
    patches: [
      {
        file: 'lease/keepalive.js',
        find: 'if (reply.detached.length === 0)',
        replace: 'if (reply.detached.length >= 0)',
      },
    ],
  },
  {
    name: 'keepalive counts from the reply',
    about:
      'a renewed keepalive counts from when the answer came, not from when the request was sent',
    worlds,
    patches: [
      {
        file: 'lease/renewer.js',
        find: 'this.#confirmAll(renewed, sent, againAtMs);',
        replace: 'this.#confirmAll(renewed, confirmationNow(clock), againAtMs);',
      },
    ],
  },
  {
    name: 'moved without a detachment',
    about:
      'a lease that a late request attaches to another keepalive is still counted by the first',
    worlds,
    patches: [
      {
        file: 'store/memory/leases.js',
        find: 'if (lease.keepalive !== attachTo.id)\n                    this.#detach(key);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'given up and kept alive',
    about:
      'a lease that its holder has given up without telling the store is renewed with the others',
    worlds,
    patches: [
      {
        file: 'lease/keepalive-set.js',
        find: 'if (!tenure.hasLeftStore)\n                this.retireAll();',
        replace: '',
      },
    ],
  },
];
