#!/usr/bin/env node
/** Three processes, one of which leads: the leader is killed, frozen and stopped, and each time another goes on. */
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, milliseconds, say, sinceStartMs, title, until } from '../staging/telling.mjs';

const NODE = fileURLToPath(new URL('node.mjs', import.meta.url));
const TTL_MS = 2_000;
/** What a machine that does something else, too, may add to any of it. */
const SLACK_MS = 3_000;
const ABOUT = `Three processes of which one leads. The leader is killed (SIGKILL), frozen (SIGSTOP) and stopped (SIGTERM); shows who
leads, under which fence, for how long nobody did, and that followers answer reads.`;

await stage({ name: 'leader', about: ABOUT }, async ({ storeEnv, where }) => {
  console.log(
    `Three processes compete for 'scheduler', on ${where}. The lease lasts ${TTL_MS / 1_000} s.`,
  );

  title('Three are started. One leads, all answer reads.');
  const nodes = ['ana', 'ben', 'cleo'].map((name) => new Player(NODE, name, storeEnv));
  const first = await leaderAmong(nodes, 0);
  await readFrom(nodes, first.by);

  title(`${first.by.name} is killed (SIGKILL): it can not say good-bye.`);
  const killedMs = sinceStartMs();
  first.by.signal('SIGKILL');
  const two = nodes.filter((node) => node !== first.by);
  const second = await leaderAmong(two, first.fence);
  succeeds(second, first, killedMs, TTL_MS);

  title(`${second.by.name} is frozen (SIGSTOP), and can not know it.`);
  const frozenMs = sinceStartMs();
  second.by.signal('SIGSTOP');
  const third = await leaderAmong(two, second.fence);
  succeeds(third, second, frozenMs, TTL_MS);
  second.by.signal('SIGCONT');
  const { seen: lost } = await until('the frozen one to notice', () => second.by.last('lost'));
  claim(
    // Frozen in the middle of a write, that is refused for its fence, and so its work has failed.
    ['expired', 'failed'].includes(lost.reason),
    `${second.by.name} wakes up, and knows at once that it does not lead: ${lost.reason}`,
  );
  await readFrom(two, third.by);

  title(`${third.by.name} is asked to stop (SIGTERM): it lets go.`);
  const askedMs = sinceStartMs();
  third.by.signal('SIGTERM');
  const fourth = await leaderAmong([second.by], third.fence);
  // Nobody has to wait for a lease to run out.
  succeeds(fourth, third, askedMs, 0);
  claim((await third.by.ended()) === 0, `${third.by.name} has ended with exit code 0`);

  title('The last one is asked to stop.');
  fourth.by.signal('SIGTERM');
  claim((await fourth.by.ended()) === 0, `${fourth.by.name} has ended with exit code 0`);
});

/** Who says that it leads, under a higher fence than any before. */
async function leaderAmong(nodes, fence) {
  const { seen } = await until('somebody to lead', () =>
    nodes.map((by) => ({ ...by.last('elected'), by })).find((elected) => elected.fence > fence),
  );
  return seen;
}

function succeeds(next, before, fromMs, atMostMs) {
  const gapMs = next.atMs - fromMs;
  claim(
    next.fence > before.fence,
    `${next.by.name} leads under a higher fence: ${next.fence} after ${before.fence}`,
  );
  claim(gapMs < atMostMs + SLACK_MS, `nobody led for ${milliseconds(gapMs)}`);
}

/** Asks everybody, until all of them have answered with what this leader has scheduled. */
async function readFrom(nodes, leader) {
  for (const node of nodes) {
    const { seen } = await until(`${node.name} to answer`, () => answerOf(node, leader));
    const role = seen.isLeader ? 'leads' : 'follows';
    say(`GET / from ${node.name}, which ${role}: ${JSON.stringify(seen.schedule)}`);
    claim(seen.isLeader === (node === leader), `${node.name} ${role}, and answers`);
  }
}

async function answerOf(node, leader) {
  const served = node.last('serves');
  if (served === undefined) return null;
  const answer = await (await fetch(`http://127.0.0.1:${served.port}/`)).json();
  return answer.schedule?.by === leader.name && answer;
}
