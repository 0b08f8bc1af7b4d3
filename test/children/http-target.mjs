// A target over HTTP whose kernel takes few connections while it stands still. Says each request that it gets, with its fence.
import { createServer } from 'node:http';

/** How many connections wait to be accepted: the least that there can be. */
const BACKLOG = 1;

const server = createServer((request, response) => {
  const fence = Number(request.headers['holdfast-fence']);
  console.log(JSON.stringify({ event: 'request', fence }));
  response.writeHead(200, { connection: 'close' }).end('ok');
});
server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG }, () => {
  console.log(JSON.stringify({ event: 'listening', port: server.address().port }));
});
