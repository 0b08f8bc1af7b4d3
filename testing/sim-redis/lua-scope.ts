/** What is known of a value before a script runs. */
export type StaticType = 'boolean' | 'number' | 'string' | 'unknown';

/** A local of Lua, and the local of JavaScript that it has become. */
export interface Local {
  readonly code: string;
  readonly type: StaticType;
  /** A function that is never replaced by something else. */
  readonly isFunction: boolean;
  /** A function that always gives one value. */
  isSingle: boolean;
}

/**
 * Which locals there are at a place of a script. In Lua a block may have two of the same name, and
 * a name may be a word of JavaScript: so each gets a number.
 */
export class Scope {
  /** Names that are assigned to somewhere: of their values nothing is known. */
  readonly #assigned: ReadonlySet<string>;
  readonly #blocks: Map<string, Local>[] = [];
  #count = 0;

  constructor(assigned: ReadonlySet<string>) {
    this.#assigned = assigned;
  }

  inside<T>(body: () => T): T {
    this.#blocks.push(new Map());
    try {
      return body();
    } finally {
      this.#blocks.pop();
    }
  }

  declare(name: string, { type = 'unknown' as StaticType, isFunction = false } = {}): Local {
    const isAssigned = this.#assigned.has(name);
    const local: Local = {
      code: `${name}$${++this.#count}`,
      type: isAssigned ? 'unknown' : type,
      isFunction: isFunction && !isAssigned,
      isSingle: false,
    };
    this.#blocks.at(-1)?.set(name, local);
    return local;
  }

  isAssigned(name: string): boolean {
    return this.#assigned.has(name);
  }

  find(name: string): Local | undefined {
    for (let i = this.#blocks.length - 1; i >= 0; i--) {
      const local = this.#blocks[i]?.get(name);
      if (local !== undefined) return local;
    }
    return undefined;
  }

  /** A name that nothing in the script has. */
  fresh(): string {
    return `$${++this.#count}`;
  }
}
