/**
 * `holdfast demo`: three instances, and something to do for them, so that one can see what happens
 * when they are killed or frozen. All of it is what everybody else runs: the instances are
 * processes of this very command, `holdfast up`; this process only serves the page and whatever
 * they poll, and takes no part, so that the page is there whatever is done to them.
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
import { DemoFleet } from './demo-fleet.ts';
import { type DemoFolder, makeDemoFolder } from './demo-folder.ts';
import { DemoOutput } from './demo-output.ts';
import { demoFacts, greeting } from './greeting.ts';
import type { InstanceRun } from './instance-run.ts';
import { ProgrammeRun } from './programme-run.ts';

export interface DemoFlags {
  readonly port?: number;
}

/** Short, so that a takeover is seen while one watches. */
const TTL_MS = 4_000;
/** What the instances are told, beside which store. */
const INSTANCE: HoldfastConfig = {
  ttl: TTL_MS,
  every: '2s',
  // The stations are on this host, whichever store it is.
  http: { allow: ['loopback'] },
  resources: { tuners: 4 },
  worker: { ttl: TTL_MS },
};
/** How often is looked who owns what. */
const LOOK_MS = 500;
/** How long requests that are being answered may take when everything ends. */
const DOOR_WITHIN_MS = 500;
/** How often a terminal is told how far it is. */
const PROGRESS_MS = 100;

export async function demo(context: Context, { port }: DemoFlags): Promise<Exit> {
  neverBlock();
  const ending = new StopSignals();
  const premises = makeDemoFolder(context.flags);
  const board = new DemoOutput(context.output);
  const settings = { ...premises.store, api: { ...(port !== undefined && { port }) } };
  const commands = supervisedCommands(systemClock);
  const cast = castOf(premises, commands, (told) => {
    if (!ending.asked.aborted) board.tell(told);
  });
  try {
    const door = new UpServer({
      settings,
      env: {},
      stage: cast,
      onError: (message) => board.tell(message),
    });
    await door.open();
    const holdfast = await ending.unlessAsked(openWith(settings, { name: 'demo' }));
    if (holdfast === null) return EXIT.ok;
    const show = { premises, board, cast, door, holdfast, ending };
    return await perform(show, context);
  } finally {
    // Whoever has got this far without them has them killed.
    await cast.kill();
    await commands.close();
    premises.remove();
    ending.close();
  }
}

interface Show {
  readonly premises: DemoFolder;
  readonly board: DemoOutput;
  readonly cast: DemoFleet;
  readonly door: UpServer;
  readonly holdfast: Holdfast;
  readonly ending: StopSignals;
}

async function perform(show: Show, { output }: Context): Promise<Exit> {
  const { premises, cast, door, holdfast, ending } = show;
  const open = (options: OpenOptions) => openWith(premises.store, options);
  const programme = new ProgrammeRun(holdfast, open);
  // It runs nothing here: only so that the page knows which slots there are.
  workerOf(holdfast, INSTANCE);
  door.lead(holdfast, { poller: null, worker: null });
  await programme.begin();
  await cast.begin();
  const facts = await demoFacts(show);
  // One line, so that whoever reads it need not wait for the end.
  write(1, output.json ? `${toJson(facts)}\n` : greeting(facts, TTL_MS, output));
  const watching = watch(show);
  await ending.whenAsked();
  await watching;
  return (await ending.unlessInsisted(end(show, programme))) ?? EXIT.ok;
}

/** Sees who takes part and who owns what, until the end. */
async function watch({ board, cast, holdfast, ending }: Show): Promise<void> {
  while (!ending.asked.aborted) {
    // While the store does not answer, the last picture stays.
    const view = await holdfast.fleet.view().catch(() => null);
    if (view !== null && !ending.asked.aborted) {
      cast.see(view.members);
      board.show(cast.actors, view);
    }
    await systemClock.sleep(LOOK_MS, ending.asked).catch(() => {});
  }
}

/** Has all of them hand over and end, and says how far that is. */
async function end(show: Show, programme: ProgrammeRun): Promise<null> {
  const { board, cast, door, holdfast, premises } = show;
  const startMs = systemClock.monotonicMs();
  const over = new AbortController();
  const showing = showProgress(show, over.signal);
  await Promise.all([programme.end(), door.close(DOOR_WITHIN_MS), cast.leave()]);
  if (!premises.isPrivate) await programme.remove();
  await holdfast.close({ within: 0 });
  over.abort();
  await showing;
  board.clear();
  board.print(`Ended in ${spanOf(systemClock.monotonicMs() - startMs)}.\n`);
  return null;
}

async function showProgress({ board, cast }: Show, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const left = cast.actors.filter(({ state }) => state !== 'dead').map(({ name }) => name);
    const who = left.length === 0 ? '' : ` ${left.join(', ')}: handing over and ending`;
    board.status(`Ending …${who}. Ctrl-C again ends it at once.`);
    await systemClock.sleep(PROGRESS_MS, over).catch(() => {});
  }
}

function castOf(premises: DemoFolder, commands: Commands, tell: (text: string) => void): DemoFleet {
  const { store = '', prefix = '', quarantine, maxTtl } = premises.store;
  const instance = { ...INSTANCE, ...(maxTtl !== undefined && { maxTtl }) };
  return new DemoFleet({
    clock: systemClock,
    commands,
    config: premises.configure(instance),
    env: {
      HOLDFAST_STORE: store,
      HOLDFAST_PREFIX: prefix,
      ...(quarantine !== undefined && { HOLDFAST_QUARANTINE: quarantine }),
    },
    onChange: (actor, why) => {
      // What is ordered is no news; what comes of it is.
      if (actor.state !== 'starting') tell(sentence(actor, why));
    },
  });
}

/** What has become of one of them, for those who watch. */
function sentence({ name, state }: InstanceRun, why: string | undefined): string {
  return why === undefined ? `${name} is ${state}` : `${name} is ${state}: ${why}`;
}
