// A host with a clock of its own, `offsetMs` off, and a cron: it runs a job once per period at the fires that it is told, by its
// own clock. {"do": "cron", "fires": […], "key": …, "options": …, "jobMs": …}, or one call now: {"do": "once", …}.
import { setTimeout as sleep } from 'node:timers/promises';
import { open, systemClock } from 'holdfast';
import { hostMs, obey, say, tellUnhandled } from './parent.mjs';

tellUnhandled();

const [url, offsetMs] = process.argv.slice(2);
const clock = {
  startedAtMs: systemClock.startedAtMs,
  monotonicMs: () => systemClock.monotonicMs(),
  wallMs: () => systemClock.wallMs() + Number(offsetMs),
  after: (ms, run) => systemClock.after(ms, run),
  soon: (run) => systemClock.soon(run),
  afterInput: (run) => systemClock.afterInput(run),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};
const holdfast = await open(url, { quarantine: 'off', clock, on: { 'store.warned': () => {} } });

async function once({ key, options, jobMs, fire }) {
  const result = await holdfast.once(key, options, async ({ fence }) => {
    say({ event: 'began', fire, fence, atMs: hostMs() });
    await sleep(jobMs);
  });
  return { fire, ok: result.ok, reason: result.reason, holder: result.holder };
}

obey({
  once,
  async cron({ fires, ...job }) {
    for (const [fire, atMs] of fires.entries()) {
      await sleep(Math.max(0, atMs - clock.wallMs()));
      say({ event: 'answered', ...(await once({ ...job, fire })) });
    }
    return {};
  },
});
say({ event: 'ready' });
