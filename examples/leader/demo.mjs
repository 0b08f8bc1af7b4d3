#!/usr/bin/env node
/** Three processes, one of which leads: the leader is stopped, killed and frozen, and each time another goes on. */
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';
import { stage } from '../staging/stage.mjs';
import { claim, milliseconds, say, sinceStartMs, title, until } from '../staging/telling.mjs';

const NODE = fileURLToPath(new URL('node.mjs', import.meta.url));
const TTL_MS = 2_000;
/** What a machine that does something else, too, may add to any of it. */
const SLACK_MS = 3_000;
/** Less than it takes for a lease to run out. */
const HANDED_OVER_MS = 1_500;
const ABOUT = `Three processes of which one leads. The leader is stopped (SIGTERM), killed (SIGKILL) and frozen (SIGSTOP); shows who
leads, under which fence, for how long nobody did, and that followers answer reads.`;

await stage({ name: 'leader', about: ABOUT }, async ({ storeEnv, where }) => {
  console.log(
    `Three processes compete for 'scheduler', on ${where}. The lease lasts ${TTL_MS / 1_000} s.`,
  );
  const start = (name) => new Player(NODE, name, storeEnv);

  title('Three are started. One leads, all answer reads.');
  const nodes = ['ana', 'ben', 'cleo'].map(start);
  const first = await leaderAmong(nodes, 0);
  await readFrom(nodes, first.by);

  title(`${first.by.name} is asked to stop (SIGTERM), as when a new version comes: it lets go.`);
  const two = nodes.filter((node) => node !== first.by);
  const second = await replace(first, two, () => first.by.signal('SIGTERM'), HANDED_OVER_MS);
  claim((await first.by.ended()) === 0, `${first.by.name} has ended with exit code 0`);
  const back = start(first.by.name);
  const three = [...two, back];
  await readFrom([back], second.by);

  title(`${second.by.name} is killed (SIGKILL): it can not say good-bye.`);
  const rest = three.filter((node) => node !== second.by);
  const third = await replace(second, rest, () => second.by.signal('SIGKILL'), TTL_MS + SLACK_MS);

  title(`${third.by.name} is frozen (SIGSTOP), and can not know it.`);
  const fourth = await replace(third, rest, () => third.by.freeze(), TTL_MS + SLACK_MS);
  third.by.signal('SIGCONT');
  const { seen: lost } = await until('the frozen one to notice', () => third.by.last('lost'));
  claim(
    // Frozen while it waited for an answer to its write, that is refused for its fence, and so its work has failed.
    ['expired', 'failed'].includes(lost.reason),
    `${third.by.name} wakes up, and knows at once that it does not lead: ${lost.reason}`,
  );
  await readFrom(rest, fourth.by);

  title('Everybody is asked to stop.');
  for (const node of [third.by, fourth.by]) {
    node.signal('SIGTERM');
    claim((await node.ended()) === 0, `${node.name} has ended with exit code 0`);
  }
});

/** Ends a leader's time: who leads next, and for how long nobody did. */
async function replace(leader, others, end, atMostMs) {
  const fromMs = sinceStartMs();
  end();
  const next = await leaderAmong(others, leader.fence);
  const gapMs = next.atMs - fromMs;
  claim(true, `${next.by.name} leads under a higher fence: ${next.fence} after ${leader.fence}`);
  claim(gapMs < atMostMs, `nobody led for ${milliseconds(gapMs)}`);
  return next;
}

/** Who says that it leads, under a higher fence than any before. */
async function leaderAmong(nodes, fence) {
  const { seen } = await until('somebody to lead', () =>
    nodes.map((by) => ({ ...by.last('elected'), by })).find((elected) => elected.fence > fence),
  );
  return seen;
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
