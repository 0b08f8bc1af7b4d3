/**
 * An Express service that polls things, and may run as often as you like: `HOLDFAST_STORE=redis://… PORT=3000 node app.mjs NAME`.
 * Each target is polled by one of the instances; a second one gets its half, and what a dead one polled the others take over.
 */
import express from 'express';
import { open } from 'holdfast';
import { createApp } from 'holdfast/server';

const [name = 'app'] = process.argv.slice(2);
const { HOLDFAST_STORE, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: quarantine } = process.env;
const { TTL = '30s', PORT = '3000' } = process.env;
const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine });

const poller = holdfast.poller({
  ttl: TTL, // how long a dead instance goes unnoticed, at most
  async poll({ url }, { signal, fence }) {
    // What it returns is kept as the target's last result. Losing the target ends the request.
    const response = await fetch(url, { signal, headers: { 'X-Polled-By': `${name}/${fence}` } });
    return { status: response.status };
  },
});
await poller.start();

const app = express();
app.use(express.json());

app.post('/targets', async ({ body: { id, url, every = '10s' } }, response) => {
  response.status(201).json(await holdfast.targets.add({ id, url, every }));
});

app.get('/targets', async (_, response) => {
  const { targets } = await holdfast.targets.list();
  const results = await holdfast.fleet.results(targets.map(({ id }) => id));
  response.json(targets.map(({ id, url }) => ({ id, url, last: results.get(id) ?? null })));
});

app.delete('/targets/:id', async ({ params }, response) => {
  await holdfast.targets.remove(params.id);
  response.sendStatus(204);
});

/** Who polls what: the same from every instance, for it is read from the store. */
app.get('/owners', async (_, response) => {
  const { members, targets } = await holdfast.fleet.picture();
  const ofMember = ({ id, name }) => [
    name,
    targets.filter(({ owner }) => owner === id).map(({ id }) => id),
  ];
  response.json(Object.fromEntries(members.map(ofMember)));
});

// Holdfast's own answers for probes: /healthz asks nobody, /readyz fails while the store is away, and from the moment this stops.
const operations = createApp(holdfast);
app.get(['/healthz', '/readyz'], async ({ path }, response) => {
  const answer = await operations.fetch(new Request(`http://localhost${path}`));
  response
    .status(answer.status)
    .set(Object.fromEntries(answer.headers))
    .send(await answer.text());
});

/** Errors of Holdfast say in `code` what it was. */
app.use((error, _request, response, _next) => {
  const status = { SESSION_EXISTS: 409, SESSION_NOT_FOUND: 404, CONFIG_INVALID: 400 }[error.code];
  response.status(status ?? error.status ?? 500).json({ code: error.code, message: error.message });
});

const server = app.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`${name} listens on http://127.0.0.1:${server.address().port}`),
);

process.once('SIGTERM', async () => {
  const answered = new Promise((resolve) => server.close(resolve)); // what is being answered still is
  await operations.close();
  await holdfast.close({ within: '10s' }); // polls under way may end, and every target is handed over
  await answered;
});
