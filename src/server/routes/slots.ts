/** The slots of pools, and their holders. */
import { z } from 'zod';
import type { Pool, SlotView } from '../../lease/pool/pool.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { holderNames } from './holder-names.ts';
import { expiryJson } from './json/fleet-json.ts';

export const slotSchema = z
  .object({
    pool: z.string(),
    slot: z.string(),
    state: z.enum(['held', 'revoked', 'free']),
    worker: z.string().nullable().meta({ description: 'The instance that holds it.' }),
    session: z.string().nullable().meta({ description: 'The session it is held for.' }),
    fence: z.string().meta({ description: 'A decimal number as text; "0": never held.' }),
    expiresInMs: z.number().int().nullable(),
  })
  .meta({ id: 'Slot' });

export function slotRoutes({ holdfast, intents }: ServerContext): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/v3/slots',
      access: 'v3:read',
      tenants: 'no',
      group: 'operation',
      summary: 'List slots',
      description:
        'The slots of the pools that this instance’s worker uses; empty without a worker.',
      responses: {
        200: {
          description: 'All slots of all pools.',
          body: z.object({ slots: z.array(slotSchema) }).meta({ id: 'Slots' }),
        },
      },
      problems: [],
      async handle({ caller }) {
        const found = (await Promise.all(holdfast.pools.map(slotsOf))).flat();
        const holders = found.map(({ holder }) => holder);
        const shown = await holderNames(intents, caller, holders);
        const slots = found.map(({ holder, ...slot }) => {
          return { ...slot, ...splitHolder(holder === null ? null : shown(holder)) };
        });
        return { body: { slots } };
      },
    }),
  ];
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

/** A worker holds a slot as `instance/session`. Other holders have names of their own. */
function splitHolder(holder: string | null): { worker: string | null; session: string | null } {
  const slash = holder?.lastIndexOf('/') ?? -1;
  if (holder === null || slash < 0) return { worker: holder, session: null };
  return { worker: holder.slice(0, slash), session: holder.slice(slash + 1) };
}
