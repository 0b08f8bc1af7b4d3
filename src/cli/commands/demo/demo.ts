/**
 * `holdfast demo`: three instances that share some work, so that a user can kill and freeze them
 * and see what happens. The instances are real: each is a process of `holdfast up`. This process
 * serves the page and the weather stations, and is no member of the fleet, so the page stays.
 */

import type { HoldfastConfig } from '../../../config.ts';
import { systemClock } from '../../../core/clock.ts';
import type { Holdfast, OpenOptions } from '../../../holdfast.ts';
import { type Commands, supervisedCommands } from '../../../worker/supervisor/commands.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { openWith } from '../../opening.ts';
import { neverBlock, write } from '../../ui/output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { spanOf, toJson } from '../../ui/text.ts';
import { UpServer } from '../up/up-server.ts';
import { workerOf } from '../up/worker-settings.ts';
import { type DemoFleet, makeDemoFleet } from './demo-fleet.ts';
import { type DemoFolder, makeDemoFolder } from './demo-folder.ts';
import { DemoOutput } from './demo-output.ts';
import { greeting, typeable } from './greeting.ts';
import type { InstanceRun } from './instance-run.ts';
import { type Programme, startProgramme } from './programme.ts';

export interface DemoFlags {
  readonly port?: number;
}

/** Short, so that a user sees a takeover. */
const TTL_MS = 4_000;
/** The configuration of the instances, except for the store. */
const INSTANCE: HoldfastConfig = {
  ttl: TTL_MS,
  every: '2s',
  // The stations are on this host, wherever the store is.
  http: { allow: ['loopback'] },
  resources: { tuners: 4 },
  worker: { ttl: TTL_MS },
};
/** How often the fleet is read. */
const READ_EVERY_MS = 500;
/** How long open requests may take at the end. */
const CLOSE_WITHIN_MS = 500;
/** How often a terminal shows the progress of stopping. */
const PROGRESS_EVERY_MS = 100;

export async function demo(context: Context, { port }: DemoFlags): Promise<Exit> {
  neverBlock();
  const signals = new StopSignals();
  const folder = makeDemoFolder(context.flags);
  const output = new DemoOutput(context.output);
  const settings = { ...folder.store, api: { ...(port !== undefined && { port }) } };
  const commands = supervisedCommands(systemClock);
  const fleet = fleetOf(folder, commands, (text) => {
    if (!signals.asked.aborted) output.report(text);
  });
  try {
    const server = new UpServer({
      settings,
      env: {},
      stage: fleet,
      onError: (message) => output.report(message),
    });
    await server.open();
    const holdfast = await signals.unlessAsked(openWith(settings, { name: 'demo' }));
    if (holdfast === null) return EXIT.ok;
    return await run({ folder, output, fleet, server, holdfast, signals }, context);
  } finally {
    // After an error the instances have not been stopped.
    await fleet.kill();
    await commands.close();
    folder.remove();
    signals.close();
  }
}

interface Demo {
  readonly folder: DemoFolder;
  readonly output: DemoOutput;
  readonly fleet: DemoFleet;
  readonly server: UpServer;
  readonly holdfast: Holdfast;
  readonly signals: StopSignals;
}

async function run(parts: Demo, { output }: Context): Promise<Exit> {
  const { folder, fleet, server, holdfast, signals } = parts;
  // Never started: the page reads the slots from it.
  workerOf(holdfast, INSTANCE);
  server.lead(holdfast, { poller: null, worker: null });
  const open = (options: OpenOptions) => openWith(folder.store, options);
  const programme = await startProgramme(holdfast, open);
  await fleet.start();
  const facts = {
    page: server.pageUrl,
    url: server.url,
    token: server.madeToken,
    store: typeable((await holdfast.examine()).store, folder.store.store),
    prefix: folder.store.prefix ?? '',
    instances: fleet.actors.map(({ picture: { name, pid } }) => ({ name, pid })),
  };
  // JSON on one line, so that its reader need not wait for the end.
  write(1, output.json ? `${toJson(facts)}\n` : greeting(facts, TTL_MS, output));
  const watching = watch(parts);
  await signals.whenAsked();
  await watching;
  return (await signals.unlessInsisted(stop(parts, programme))) ?? EXIT.ok;
}

/** Shows the instances and their targets until a signal. */
async function watch({ output, fleet, holdfast, signals }: Demo): Promise<void> {
  while (!signals.asked.aborted) {
    // While the store does not answer, the last picture stays.
    const view = await holdfast.fleet.view().catch(() => null);
    if (view !== null && !signals.asked.aborted) {
      fleet.refresh(view.members);
      output.show(fleet.actors, view);
    }
    await systemClock.sleep(READ_EVERY_MS, signals.asked).catch(() => {});
  }
}

/** Stops the instances, and shows the progress. */
async function stop(parts: Demo, programme: Programme): Promise<null> {
  const { output, fleet, server, holdfast, folder } = parts;
  const startMs = systemClock.monotonicMs();
  const over = new AbortController();
  const showing = showProgress(parts, over.signal);
  await Promise.all([programme.stop(), server.close(CLOSE_WITHIN_MS), fleet.stop()]);
  if (!folder.isPrivate) await programme.remove();
  await holdfast.close({ within: 0 });
  over.abort();
  await showing;
  output.clear();
  output.print(`Ended in ${spanOf(systemClock.monotonicMs() - startMs)}.\n`);
  return null;
}

async function showProgress({ output, fleet }: Demo, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const left = fleet.actors.filter(({ state }) => state !== 'dead').map(({ name }) => name);
    const rest = left.length === 0 ? '' : ` ${left.join(', ')}: handing over and ending`;
    output.status(`Ending …${rest}. Ctrl-C again ends it at once.`);
    await systemClock.sleep(PROGRESS_EVERY_MS, over).catch(() => {});
  }
}

function fleetOf(
  folder: DemoFolder,
  commands: Commands,
  report: (text: string) => void,
): DemoFleet {
  const { store = '', prefix = '', quarantine, maxTtl } = folder.store;
  const instance = { ...INSTANCE, ...(maxTtl !== undefined && { maxTtl }) };
  return makeDemoFleet({
    clock: systemClock,
    commands,
    config: folder.configure(instance),
    env: {
      HOLDFAST_STORE: store,
      HOLDFAST_PREFIX: prefix,
      ...(quarantine !== undefined && { HOLDFAST_QUARANTINE: quarantine }),
    },
    onChange: ({ name, state }: InstanceRun, why) => {
      if (state === 'starting') return;
      report(why === undefined ? `${name} is ${state}` : `${name} is ${state}: ${why}`);
    },
  });
}
