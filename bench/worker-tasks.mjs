/** What a process of the bench of workers can be asked to do. Each task is given `{ holdfast, intents, stage, … }` and facts. */
import { Agent, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp, serve as listen } from 'holdfast/server';
import { each } from './contenders/keeping.mjs';
import { monotonicMs } from './statistics.mjs';

const TOKEN = 'the-token-of-the-bench';
const BY = { tenant: 'default', client: 'bench' };
const LOOK_EVERY_MS = 2;
/** Submitted at once. */
const LANES = 64;

export const tasks = {
  /** Who it is. */
  async open({ holdfast }) {
    return holdfast.instanceId;
  },
  serve,
  work,
  stopWorking,
  post,
  submit,
  stopSessions,
  untilState,
  leases,
  begunAt,
  untilBegun,
  endOne,
  untilIdle,
};

/** The port of the interface on this store. */
async function serve({ holdfast, intents }) {
  const tokens = [{ id: 'bench', token: TOKEN, scope: 'v3:admin' }];
  const { port } = await listen(createApp(holdfast, { tokens, intents }), {
    host: '127.0.0.1',
    port: 0,
  });
  return port;
}

/** Begins to work; what runs is `command`, or a function that lasts until it is told to end. When that was asked for. */
async function work(state, { options, command }) {
  const { holdfast, stage } = state;
  const pipeline = command === undefined ? stage.pipeline : { command };
  holdfast.on('lease.released', () => {
    state.lastReleaseMs = monotonicMs();
  });
  const askedAtMs = monotonicMs();
  state.worker = holdfast.worker({ ...options, pipelines: { live: pipeline, vod: pipeline } });
  await state.worker.start();
  return askedAtMs;
}

/** As a worker that is told to stop does it: when that was, and how long after that what had happened. */
async function stopWorking(state) {
  const { worker, stage } = state;
  const askedAtMs = monotonicMs();
  await worker.stop({ within: '10s' });
  const { lastEndMs } = stage;
  return { askedAtMs, lastEndMs, lastReleaseMs: state.lastReleaseMs, doneAtMs: monotonicMs() };
}

/** Over a connection that stays: when it was sent, when 202 was here, and which session it is. */
async function post(state, { port, body }) {
  state.agent ??= new Agent({ keepAlive: true, maxSockets: 1 });
  const sent = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    'content-type': 'application/json',
    'content-length': sent.length,
  };
  const to = { port, host: '127.0.0.1', path: '/api/v3/intents', method: 'POST', headers };
  const sentAtMs = monotonicMs();
  const response = await new Promise((resolve, reject) => {
    request({ ...to, agent: state.agent }, resolve)
      .on('error', reject)
      .end(sent);
  });
  const acceptedAtMs = monotonicMs();
  const answer = await json(response);
  if (response.statusCode !== 202) throw new Error(`answered with ${JSON.stringify(answer)}`);
  return { sentAtMs, acceptedAtMs, id: answer.sessionId };
}

/** The sessions of these channels or recordings, which nobody has started yet. */
async function submit({ intents }, { refs, type = 'stream.start' }) {
  const ids = new Array(refs.length);
  const target = type === 'vod.start' ? 'recordingId' : 'serviceRef';
  await each(refs.length, LANES, async (at) => {
    const { session } = await intents.submit({ type, [target]: refs[at] }, BY);
    ids[at] = session.id;
  });
  return ids;
}

async function stopSessions({ intents }, { ids }) {
  await each(ids.length, LANES, (at) =>
    intents.submit({ type: 'stream.stop', sessionId: ids[at] }, BY),
  );
}

/** When all of them were seen in this state, and who had them then. */
async function untilState({ intents }, { ids, state }) {
  for (;;) {
    const sessions = await Promise.all(ids.map((id) => intents.session(id, null)));
    const atMs = monotonicMs();
    if (sessions.every((session) => session.state === state))
      return { atMs, workers: sessions.map(({ worker }) => worker) };
    const ended = sessions.find((session) => session.state === 'ENDED');
    if (ended !== undefined && state !== 'ENDED')
      throw new Error(`a session has ended: ${JSON.stringify(ended)}`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** The keys of all there are. */
async function leases({ holdfast }) {
  const keys = [];
  let cursor;
  do {
    const page = await holdfast.list(cursor);
    keys.push(...page.leases.map(({ key }) => key));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return keys;
}

async function begunAt({ stage }, { id }) {
  return stage.whenBegun(id);
}

/** When the last of so many had begun. */
async function untilBegun({ stage }, { count }) {
  while (stage.begun < count) await sleep(LOOK_EVERY_MS);
  return stage.lastBeginMs;
}

/** Ends what runs for a session; when that was. */
async function endOne({ stage }, { id }) {
  return stage.end(id);
}

/** It has nothing to do any more. */
async function untilIdle({ worker }) {
  while (worker.sessions > 0) await sleep(LOOK_EVERY_MS);
}
