import type { HoldfastConfig } from '../../../config.ts';
import { shortName } from '../../../core/ids.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { PipelineOption } from '../../../worker/worker-options.ts';
import { counted, printable } from '../../ui/text.ts';
import type { Instance } from './instance.ts';
import type { UpServer } from './up-server.ts';

/** Prints what this instance does, its store, and what to try next. */
export async function greet(instance: Instance, settings: HoldfastConfig): Promise<void> {
  const { holdfast, poller, worker, door, log, status } = instance;
  const { instanceId } = holdfast;
  const seen = await readFleet(holdfast).catch(() => null);
  const owned = poller?.manager.ownedSessions().length;
  const summary = [
    ...(poller === null || seen === null ? [] : [sharesOf(seen)]),
    ...(worker === null ? [] : [runsOf(worker, settings)]),
  ];
  const served = door === null ? {} : { url: door.url };
  const facts = poller === null ? served : { ...seen, owned };
  log.say('info', summary.length === 0 ? 'is up' : `is up: ${summary.join('; ')}`, facts);
  if (status === null) return;
  const store = seen === null ? 'a store that does not answer' : seen.store;
  const lines = [
    `${shortName(instanceId)} is up, on ${printable(store)}.`,
    ...(door === null ? [] : ofDoor(door)),
    ...(worker === null ? [] : ofWorker(worker, settings)),
    ...(poller === null ? [] : ofPoller(seen)),
    poller === null ? '  Ctrl-C stops it.' : '  Ctrl-C hands its targets over and stops it.',
  ];
  status.above(`${lines.join('\n')}\n`);
}

function sharesOf({ targets, members }: Seen): string {
  return `${counted(targets, 'target')} for ${counted(members, 'instance')}`;
}

/** The pipelines and pools of the worker. */
function runsOf(
  { pools, kinds }: Worker,
  { pipelines = {}, kinds: declared = {} }: HoldfastConfig,
): string {
  const works = kinds.map((kind): [string, string] => {
    if (kind === 'live' || kind === 'vod') return [kind, workOf(pipelines[kind])];
    const { run } = declared[kind] ?? {};
    return [kind, workOf(run as PipelineOption | undefined)];
  });
  const [[, first = ''] = []] = works;
  const isPlain = kinds.join() === 'live,vod' && works.every(([, work]) => work === first);
  const runs = isPlain ? `sessions ${first}` : works.map((each) => each.join(' ')).join(' and ');
  const slots = pools.map(({ name, slots }) => `${counted(slots.length, 'slot')} of ${name}`);
  const needs = slots.length === 0 ? '' : `, on ${slots.join(', ')}`;
  return printable(`runs ${runs}${needs}`);
}

function workOf(pipeline: PipelineOption | undefined): string {
  if (pipeline === undefined) return 'with the built-in pipeline';
  return typeof pipeline === 'object' && 'command' in pipeline
    ? `with ${pipeline.command[0]}`
    : 'with a function';
}

function ofWorker(worker: Worker, settings: HoldfastConfig): string[] {
  const { live, vod } = settings.pipelines ?? {};
  if (live !== undefined || vod !== undefined || worker.kinds.join() !== 'live,vod')
    return [`  It ${runsOf(worker, settings)}. See the slots: holdfast slots`];
  return [
    '  It runs sessions with a small built-in pipeline that only counts the time. Set yours in holdfast.config.mjs:',
    "    export default { resources: { tuners: 4 }, pipelines: { live: { command: ['ffmpeg', '…'] } } };",
  ];
}

function ofPoller(seen: Seen | null): string[] {
  return [
    seen?.targets === 0
      ? '  There are no targets yet. Add one: holdfast targets add https://example.com'
      : '  See the owners: holdfast map. The reason: holdfast explain TARGET. The events: holdfast watch',
    '  Run holdfast up again, here or in another terminal, and the instances share the targets.',
  ];
}

function ofDoor({ url, pageUrl, madeToken }: UpServer): string[] {
  const whose = madeToken === null ? 'with one of your tokens' : 'with the token above';
  return [
    `  The page: ${pageUrl}${madeToken === null ? ', with one of your tokens' : '  (opens once; later use the token above)'}`,
    `  The API: ${url}, documented at ${url}/docs. Try it ${whose} in TOKEN:`,
    `    curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"type":"stream.start","serviceRef":"channel-7"}' ${url}/api/v3/intents`,
  ];
}

interface Seen {
  readonly store: string;
  readonly targets: number;
  readonly members: number;
}

async function readFleet(holdfast: Holdfast): Promise<Seen> {
  const [{ store }, { targets, members }] = await Promise.all([
    holdfast.examine(),
    holdfast.fleet.view(),
  ]);
  return { store, targets: targets.length, members: members.length };
}
