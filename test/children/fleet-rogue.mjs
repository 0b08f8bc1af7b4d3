// Polls every target it is given without asking anybody: what a fleet's record must be able to show.
//
//   fleet-rogue.mjs STORE {"urls": […], "everyMs": 100, "fence": 1}
import { pollTarget } from './fleet-poll.mjs';

const { urls, everyMs, fence } = JSON.parse(process.argv[3]);
const instance = `rogue-${process.pid}`;
process.stdout.write(`${JSON.stringify({ event: 'ready', id: instance })}\n`);
setInterval(() => {
  for (const url of urls) void pollTarget(url, { instance, fence }).catch(() => {});
}, everyMs);
