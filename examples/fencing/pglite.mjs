/** PostgreSQL without a server: it runs in this process, and the others ask it over HTTP. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { PGlite } from '@electric-sql/pglite';

/** Its address. */
export async function servePglite() {
  const database = await PGlite.create();
  const server = createServer(async (request, response) => {
    const [status, answer] = await answerTo(database, await json(request));
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}/`;
}

async function answerTo(database, { text, values }) {
  try {
    const { rows, affectedRows } = await database.query(text, values);
    return [200, { rows, rowCount: affectedRows }];
  } catch ({ message }) {
    return [400, { message }];
  }
}
