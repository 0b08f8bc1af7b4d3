/** The progress of a transfer. */
import { nameOf } from '../../data/palette.ts';
import type { Tenure } from '../../data/tenures.ts';

export interface Order {
  readonly to: string;
  /** The owner then; null: none. */
  readonly from: string | null;
  /** Of its tenure. */
  readonly fence: string;
}

export interface OrderStep {
  readonly name: string;
  readonly isDone: boolean;
}

/** `owner`: who has it now. */
export function progressOf(
  { to, from, fence }: Order,
  owner: string | null,
  tenures: readonly Tenure[],
): readonly OrderStep[] {
  const isTaken = owner === to;
  const ending = tenures.find((tenure) => tenure.fence === fence)?.ending ?? null;
  const isHanded = isTaken || ending?.kind === 'transferred' || ending?.kind === 'released';
  return [
    { name: 'ordered', isDone: true },
    ...(from === null ? [] : [{ name: `handed over by ${nameOf(from)}`, isDone: isHanded }]),
    { name: `taken by ${nameOf(to)}`, isDone: isTaken },
  ];
}
