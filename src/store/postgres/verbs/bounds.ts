import type { BoundStore } from '../../port/bound-store.ts';
import type { MaxTtls } from '../../port/keyspaces.ts';
import type { Call } from '../../port/store.ts';
import type { PostgresConnection } from '../postgres-connection.ts';
import type { EraReply, PostgresEra } from '../postgres-era.ts';
import { statement } from '../statement.ts';

/** The bounds of lease TTLs that the database records. */
export class PostgresBounds implements BoundStore {
  readonly #connection: PostgresConnection;
  readonly #schema: string;
  readonly #era: PostgresEra;

  constructor(connection: PostgresConnection, schema: string, era: PostgresEra) {
    this.#connection = connection;
    this.#schema = schema;
    this.#era = era;
  }

  async read(call: Call): Promise<Partial<MaxTtls>> {
    const { bounds } = await this.#ask('examine', '', call);
    return bounds === null ? {} : (JSON.parse(bounds) as Partial<MaxTtls>);
  }

  async change(to: MaxTtls, call: Call): Promise<void> {
    const reply = await this.#ask('bound', JSON.stringify(to), call);
    this.#era.adopt({ ...reply, began: 'its maxTtl was changed' });
  }

  async #ask(
    operation: string,
    request: string,
    { timeoutMs }: Call,
  ): Promise<EraReply & { readonly bounds: string | null }> {
    const sql = statement('server_bounds', request, { schema: this.#schema, timeoutMs });
    return JSON.parse((await this.#connection.run(operation, sql, timeoutMs)) ?? '{}');
  }
}
