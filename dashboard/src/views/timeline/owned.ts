/** A member's lane: how many targets it had over time, when it lived, when it was draining. */
import type { Mark } from '../../data/story.ts';
import type { Tenure } from '../../data/tenures.ts';

export interface Step {
  readonly at: number;
  /** From then on. */
  readonly owned: number;
}

/** Per instance, in order of time. A tenure that is older than the log counts from the beginning of time. */
export function ownedOver(all: Iterable<readonly Tenure[]>): Map<string, readonly Step[]> {
  const changes = new Map<string, Map<number, number>>();
  const change = (who: string, at: number, by: number) => {
    const known = changes.get(who) ?? new Map<number, number>();
    changes.set(who, known);
    known.set(at, (known.get(at) ?? 0) + by);
  };
  for (const tenures of all) {
    for (const { holder, from, ending } of tenures) {
      change(holder, from ?? Number.NEGATIVE_INFINITY, 1);
      if (ending !== null) change(holder, ending.at, -1);
    }
  }
  return new Map([...changes].map(([who, of]) => [who, summed(of)]));
}

function summed(changes: ReadonlyMap<number, number>): readonly Step[] {
  let owned = 0;
  return [...changes]
    .sort(([a], [b]) => a - b)
    .map(([at, by]) => {
      owned += by;
      return { at, owned };
    });
}

/** From when until when; null at an end that is not known. */
export interface Stay {
  readonly from: number | null;
  readonly to: number | null;
}

export interface Life {
  readonly stays: readonly Stay[];
  readonly drains: readonly Stay[];
}

const BEGINS = new Set(['joined']);
const ENDS = new Set(['crash', 'left']);

/** `isThere`: it is a member at present, so nothing has ended that did not begin. */
export function lifeOf(marks: readonly Mark[], isThere: boolean): Life {
  const stays = staysOf(marks, BEGINS, ENDS, isThere);
  const drains = staysOf(marks, new Set(['drain']), new Set(['undrain', ...ENDS]), false);
  return { stays, drains };
}

function staysOf(
  marks: readonly Mark[],
  begins: ReadonlySet<string>,
  ends: ReadonlySet<string>,
  isOpen: boolean,
): readonly Stay[] {
  const stays: Stay[] = [];
  let from: number | null = null;
  let isIn = false;
  for (const { kind, at } of marks) {
    if (begins.has(kind) && !isIn) {
      from = at;
      isIn = true;
    } else if (ends.has(kind)) {
      // A stay without a beginning began before the log; a drain without a beginning is none.
      if (isIn || begins === BEGINS) stays.push({ from, to: at });
      from = null;
      isIn = false;
    }
  }
  if (isIn || (isOpen && stays.at(-1)?.to === undefined)) stays.push({ from, to: null });
  else if (isOpen) stays.push({ from: stays.at(-1)?.to ?? null, to: null });
  return stays;
}
