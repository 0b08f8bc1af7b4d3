// Heartbeats as one of ours, and never asks for anything nor takes anything.
//
//   fleet-ghost.mjs URL {"ttlMs": 3000}
import { hostname } from 'node:os';
import { systemClock } from '../../dist/core/clock.js';
import { Emitter } from '../../dist/core/events.js';
import { systemRandom } from '../../dist/core/random.js';
import { openStore } from '../../dist/store/open-store.js';

const [url, text = '{}'] = process.argv.slice(2);
const { ttlMs = 3_000 } = JSON.parse(text);
const parts = { clock: systemClock, random: systemRandom, events: new Emitter() };
// It takes no lease, and so is bound by no maxTtl.
const { store } = await openStore(url, { ...parts, quarantine: 'off', maxTtls: null });
const id = `ghost-${hostname()}-${process.hrtime.bigint()}-${systemRandom.hex(8)}`;
const attributes = { weight: 1, draining: false };
const beat = () => store.members.beat({ id, attributes }, { ttlMs, timeoutMs: 1_000 });

await beat();
process.stdout.write(`${JSON.stringify({ event: 'ready', id })}\n`);
setInterval(() => void beat().catch(() => {}), ttlMs / 3);
