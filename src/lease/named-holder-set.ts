import type { Acquisition, Claim } from './acquisition.ts';
import type { Tenure } from './tenure.ts';

/**
 * Holders with a name that the caller chose. Several calls may use the same name, and the store
 * takes them for one holder. So this process itself keeps apart what belongs to which call.
 */
export class NamedHolderSet {
  /** The tenures whose work has not ended, by key. A list, because nearly all keys have one. */
  readonly #tenures = new Map<string, Tenure[]>();
  /** How many calls of `acquire` are pending, by key and holder. */
  readonly #pending = new Map<string, number>();

  begin(acquisition: Acquisition): void {
    const name = nameOf(acquisition);
    this.#pending.set(name, (this.#pending.get(name) ?? 0) + 1);
  }

  end(acquisition: Acquisition): void {
    const name = nameOf(acquisition);
    const count = (this.#pending.get(name) ?? 0) - 1;
    if (count > 0) this.#pending.set(name, count);
    else this.#pending.delete(name);
  }

  add(tenure: Tenure): void {
    const known = this.#tenures.get(tenure.storeKey);
    if (known === undefined) this.#tenures.set(tenure.storeKey, [tenure]);
    else known.push(tenure);
  }

  /** The work of the tenure has ended. */
  remove(tenure: Tenure): void {
    const others = this.#tenures.get(tenure.storeKey)?.filter((known) => known !== tenure) ?? [];
    if (others.length > 0) this.#tenures.set(tenure.storeKey, others);
    else this.#tenures.delete(tenure.storeKey);
  }

  /** The holder's earlier tenure of the key, unless its work has ended by now. */
  earlier({ storeKey, holder }: Claim): Tenure | undefined {
    const tenure = this.#tenures.get(storeKey)?.findLast((known) => known.holder === holder);
    if (tenure === undefined || tenure.workLeftMs() > 0) return tenure;
    tenure.endWork();
    return undefined;
  }

  /** Whether the holder works under the key, or a call wants it for the holder. */
  isInUse(claim: Claim): boolean {
    return this.earlier(claim) !== undefined || this.#pending.has(nameOf(claim));
  }
}

function nameOf({ storeKey, holder }: Claim): string {
  return `${storeKey}\n${holder}`;
}
