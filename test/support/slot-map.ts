import type { RedisServer } from './redis-server.ts';
import type { Reply } from './resp.ts';

export interface SlotRange {
  from: number;
  to: number;
  /** Ports, as all nodes are on this machine. */
  primary: number;
  replicas: readonly number[];
}

/** Who has which slots, in the order of the slots. */
export type SlotMap = readonly SlotRange[];

/** The slots as one node of a cluster sees them. */
export async function slotMap(node: RedisServer): Promise<SlotMap> {
  const ranges = list(await node.cli('CLUSTER', 'SLOTS')).map((range) => {
    const [from, to, primary, ...replicas] = list(range);
    return {
      from: Number(from),
      to: Number(to),
      primary: portOf(primary),
      replicas: replicas.map(portOf).sort((a, b) => a - b),
    };
  });
  return ranges.sort((a, b) => a.from - b.from);
}

export function sameMap(one: SlotMap, other: SlotMap): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function portOf(address: Reply | undefined): number {
  return Number(list(address)[1]);
}

function list(reply: Reply | undefined): Reply[] {
  if (!Array.isArray(reply)) throw new Error(`not a list: ${String(reply)}`);
  return reply;
}
