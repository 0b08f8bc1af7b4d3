/** A dozen weather stations that do not exist: a server that makes up what they say, and a session for each. */
import { once } from 'node:events';
import { createServer } from 'node:http';

const CITIES = [
  ...['athens', 'bergen', 'cairo', 'delhi', 'esbjerg', 'fez'],
  ...['geneva', 'havana', 'istanbul', 'jakarta', 'kyoto', 'lima'],
];

/** Serves them until the signal fires, and says where as soon as it does. */
export async function serveStations(holdfast, signal, onServing) {
  const degrees = new Map(CITIES.map((city) => [city, 10 + Math.random() * 15]));
  const server = createServer((request, response) => {
    const city = request.url?.slice(1) ?? '';
    const before = degrees.get(city);
    if (before === undefined) {
      response.writeHead(404).end();
      return;
    }
    const now = before + Math.random() - 0.5;
    degrees.set(city, now);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ city, celsius: Math.round(now * 10) / 10 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  try {
    for (const city of CITIES) await announce(holdfast, `demo-${city}`, `${url}/${city}`);
    onServing(url);
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** A station that is known keeps its owner: only its address is another. */
async function announce(holdfast, id, url) {
  if ((await holdfast.sessions.get(id)) === null) await holdfast.sessions.add({ id, url });
  else await holdfast.sessions.update(id, { url });
}

export async function removeStations(holdfast) {
  for (const city of CITIES) await holdfast.sessions.remove(`demo-${city}`).catch(() => {});
}

/** Of a member, or of an instance id: the part that people gave it. */
export function shortName(of) {
  return (of.id ?? of).replace(/-\d+-[0-9a-f]{8}$/, '');
}
