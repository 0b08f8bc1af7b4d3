import type { BoundStore } from '../../port/bound-store.ts';
import type { MaxTtls } from '../../port/keyspaces.ts';
import type { Call } from '../../port/store.ts';
import type { PostgresConnection } from '../postgres-connection.ts';
import type { EraReply, PostgresQuarantine } from '../postgres-quarantine.ts';
import { statement } from '../statement.ts';

/** The bounds of lease TTLs that the database records. */
export function postgresBounds(
  connection: PostgresConnection,
  schema: string,
  quarantine: PostgresQuarantine,
): BoundStore {
  const ask = async (
    operation: string,
    request: string,
    { timeoutMs }: Call,
  ): Promise<EraReply & { readonly bounds: string | null }> => {
    const sql = statement('server_bounds', request, { schema: schema, timeoutMs });
    return JSON.parse((await connection.run(operation, sql, timeoutMs)) ?? '{}');
  };
  return {
    async read(call) {
      const { bounds } = await ask('examine', '', call);
      return bounds === null ? {} : (JSON.parse(bounds) as Partial<MaxTtls>);
    },
    async change(to, call) {
      const reply = await ask('bound', JSON.stringify(to), call);
      quarantine.adopt({ ...reply, began: 'its maxTtl was changed' });
    },
  };
}
