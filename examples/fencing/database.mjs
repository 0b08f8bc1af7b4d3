/** PostgreSQL: a server (postgres://…), or PGlite, which is PostgreSQL inside of the one process that owns it (http://…, pglite.mjs). */
import pg from 'pg';

/** All tables are in a schema of this run. */
export async function connect(url, schema) {
  const { query, close } = url.startsWith('http:') ? overHttp(url) : await overPostgres(url);
  await query(`SET search_path TO ${schema}`);
  return { query, close };
}

async function overPostgres(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    query: (text, values) => client.query(text, values),
    close: () => client.end(),
  };
}

function overHttp(url) {
  return {
    async query(text, values = []) {
      const body = JSON.stringify({ text, values });
      const response = await fetch(url, { method: 'POST', body });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.message);
      return answer;
    },
    close: async () => {},
  };
}
