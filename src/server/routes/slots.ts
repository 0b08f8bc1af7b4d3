/** Scarce things, and who has them. */
import { z } from 'zod';
import type { Holdfast } from '../../holdfast.ts';
import type { Intents } from '../../intents/intents.ts';
import type { Pool, SlotView } from '../../lease/pool/pool.ts';
import { type Route, route } from '../http/route.ts';
import { expiryJson } from './json/fleet-json.ts';
import { holdersFor } from './other-tenants.ts';

export const slotSchema = z
  .object({
    pool: z.string(),
    slot: z.string(),
    state: z.enum(['held', 'revoked', 'free']),
    worker: z.string().nullable().meta({ description: 'The instance that has it.' }),
    session: z.string().nullable().meta({ description: 'What it is held for.' }),
    fence: z.string().meta({ description: 'A decimal number as text; "0": never held.' }),
    expiresInMs: z.number().int().nullable(),
  })
  .meta({ id: 'Slot' });

export interface SlotParts {
  readonly holdfast: Pick<Holdfast, 'pools'>;
  readonly intents: Pick<Intents, 'ofOthers'>;
}

export function slotRoute({ holdfast, intents }: SlotParts): Route {
  return route({
    method: 'GET',
    path: '/api/v3/slots',
    access: 'v3:read',
    tenants: 'no',
    group: 'operation',
    summary: 'Who has which slot',
    description: 'The pools that the worker of this instance draws from; none where it has none.',
    answers: {
      200: {
        description: 'All slots of all pools.',
        body: z.object({ slots: z.array(slotSchema) }).meta({ id: 'Slots' }),
      },
    },
    problems: [],
    async handle({ caller }) {
      const pools = await Promise.all(holdfast.pools.map(async (pool) => slotsOf(pool)));
      const found = pools.flat();
      const shown = await holdersFor(
        intents,
        caller,
        found.map(({ holder }) => holder),
      );
      const slots = found.map(({ holder, ...slot }) => {
        return { ...slot, ...holderOf(holder === null ? null : shown(holder)) };
      });
      return { body: { slots } };
    },
  });
}

async function slotsOf(pool: Pool) {
  const views = await pool.inspect();
  return views.map((view) => ({
    pool: pool.name,
    slot: view.slot,
    state: stateOf(view),
    holder: view.holder,
    fence: String(view.fence),
    expiresInMs: view.expiresInMs === 0 ? null : expiryJson(view.expiresInMs),
  }));
}

function stateOf({ holder, expiresInMs }: SlotView): 'held' | 'revoked' | 'free' {
  if (holder !== null) return 'held';
  return expiresInMs > 0 ? 'revoked' : 'free';
}

/** A worker holds a slot as `instance/session`; others as they like. */
function holderOf(holder: string | null): { worker: string | null; session: string | null } {
  const slash = holder?.lastIndexOf('/') ?? -1;
  if (holder === null || slash < 0) return { worker: holder, session: null };
  return { worker: holder.slice(0, slash), session: holder.slice(slash + 1) };
}
