/** One run: starts a store, a sink and the instances, lets the nemesis loose on them, and judges what they wrote down. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../src/core/random.ts';
import { hostMs } from '../test/support/host-clock.ts';
import { atExit } from '../test/support/process.ts';
import { TargetServer } from '../test/support/target-server.ts';
import { until } from '../test/support/until.ts';
import { check, type Verdict } from './checker.ts';
import { type Counts, countsOf } from './counts.ts';
import { Crew, type Variant } from './crew.ts';
import { type FaultKind, LINK_FAULTS, PROCESS_FAULTS } from './faults.ts';
import { type Entry, HistoryFile, readHistory, saveHistory } from './history.ts';
import { modelRefusals } from './model-trace.ts';
import { Nemesis, planFaults } from './nemesis.ts';
import type { Network } from './network.ts';
import { networkLinkFaults } from './network-faults.ts';
import { Sink } from './sink.ts';
import { CALM_MS, INSTANCES, READ_MS, RECOVERY_MS, STANDSTILL_MS, TARGETS } from './timings.ts';
import { startTopology, type TopologyName } from './topologies.ts';
import type { Topology } from './topology.ts';

export interface RunOptions {
  readonly topology: TopologyName;
  readonly seconds: number;
  readonly seed: number;
  readonly variant?: Variant;
  /** Only these kinds of faults; all that the topology knows by default. */
  readonly faults?: readonly string[];
  /** Ends the run as soon as something is found. */
  readonly stopsAtViolation?: boolean;
  /** Cuts it short. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly stage: 'starting' | 'faults' | 'recovering';
  readonly elapsedMs: number;
  readonly instances: number;
  readonly accepted: number;
  readonly refused: number;
  readonly begun: number;
  readonly underWay: readonly string[];
}

export interface RunReport {
  readonly topology: TopologyName;
  readonly variant: Variant;
  readonly seed: number;
  readonly seconds: number;
  readonly commit: string;
  readonly isInterrupted: boolean;
  /** From the first fault on until something was found, with `stopsAtViolation`. */
  readonly tookMs: number;
  readonly verdict: Verdict;
  readonly counts: Counts;
  readonly history: readonly Entry[];
}

/** A first run on a fresh server waits for its quarantine. */
const FIRST_POLLS_DEADLINE_MS = 30_000;
const PROGRESS_EVERY_MS = 500;
const CHECK_EVERY_MS = 2_000;
/** How long the calm after the storm is watched. */
const WATCH_MS = CALM_MS + 1_000;
const TICK_MS = 25;

export async function runChaos(options: RunOptions): Promise<RunReport> {
  const { topology: name, seed } = options;
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const forget = atExit(remove);
  const recordings = join(folder, 'history');
  mkdirSync(recordings);
  const history = new HistoryFile(recordings, 'harness');
  const topology = await startTopology(name, { seed, folder, history });
  try {
    return await onTopology(topology, { ...options, history, recordings });
  } finally {
    await topology.stop();
    history.close();
    remove();
    forget();
  }
}

/** The kinds of faults that a topology knows. */
function faultKinds({ ports, faults, network }: Topology): FaultKind[] {
  const onLinks = network === undefined ? LINK_FAULTS : networkLinkFaults(network);
  const hasLinks = network !== undefined || ports.length > 0;
  return [...PROCESS_FAULTS, ...(hasLinks ? onLinks : []), ...faults];
}

interface Place {
  readonly history: HistoryFile;
  readonly recordings: string;
}

async function onTopology(topology: Topology, options: RunOptions & Place): Promise<RunReport> {
  const { seconds, seed, variant = 'holdfast', history, recordings } = options;
  const kinds = chosenKinds(topology, options.faults);
  const targets = Array.from({ length: TARGETS }, (_, i) => `target-${i + 1}`);
  const found = new AbortController();
  const signal = AbortSignal.any([found.signal, ...(options.signal ? [options.signal] : [])]);
  const { ways, ports, network } = topology;
  await using sink = await Sink.start(history, network?.judgeAddress);
  await using servers = await targetServers(network);
  const folder = recordings;
  const targetUrls = servers && Object.fromEntries(targets.map((id) => [id, servers.urlOf(id)]));
  const judges = { sink: sink.url, ...(targetUrls && { targetUrls }) };
  const crew = new Crew({ variant, ways, ports, targets, ...judges, folder, history, network });
  const nemesis = new Nemesis({ crew, history, signal });
  using watch = watching({ crew, nemesis, sink, topology }, options, found);
  let startedAtMs = hostMs();
  try {
    await Promise.all(Array.from({ length: INSTANCES }, () => crew.start()));
    const what = 'every target to be polled';
    await until(() => sink.hasAll(targets, 0), { what, deadlineMs: FIRST_POLLS_DEADLINE_MS });
    const { neverForgets = false, isSharded = false } = topology;
    history.write('harness', 'run.began', { targets, neverForgets, isSharded });
    startedAtMs = watch.next('faults');
    const planned = planFaults(kinds, seededRandom(seed), seconds * 1_000);
    await nemesis.run(planned, seconds * 1_000);
    watch.next('recovering');
    if (!signal.aborted) await recover(sink, targets, signal);
  } catch (error) {
    // Ctrl-C ends the processes of the run too.
    if (!signal.aborted) throw error;
  } finally {
    history.write('harness', 'run.ended');
    await crew.end();
  }
  for (const poll of servers?.polls ?? [])
    history.write('target server', 'target.polled', { ...poll });
  const entries = await withCommits(readHistory(recordings), topology);
  return {
    topology: options.topology,
    variant,
    seed,
    seconds,
    commit: commit(),
    isInterrupted: options.signal?.aborted ?? false,
    tookMs: (watch.foundAtMs ?? hostMs()) - startedAtMs,
    verdict: judge(entries),
    counts: countsOf(
      entries,
      kinds.map(({ name }) => name),
    ),
    history: entries,
  };
}

function judge(history: readonly Entry[]): Verdict {
  return check(history, modelRefusals(history));
}

/** What the store's database has committed is part of the history. */
async function withCommits(history: readonly Entry[], { commits }: Topology): Promise<Entry[]> {
  const committed = (await commits?.()) ?? [];
  return [...history, ...committed].sort((a, b) => a.atMs - b.atMs);
}

/** What polls read from, where a partition of the store must not hide who polls. */
async function targetServers(network: Network | undefined): Promise<TargetServer | undefined> {
  const [leastMs, mostMs] = READ_MS;
  const latencyMs = (leastMs + mostMs) / 2;
  return network && TargetServer.start({ latencyMs, host: network.judgeAddress });
}

export class UnknownFaultError extends Error {}

function chosenKinds(topology: Topology, names: readonly string[] | undefined): FaultKind[] {
  const known = faultKinds(topology);
  const unknown = names?.filter((name) => !known.some((kind) => kind.name === name)) ?? [];
  if (unknown.length > 0) {
    const all = known.map(({ name }) => `'${name}'`).join(', ');
    throw new UnknownFaultError(`no fault here is called '${unknown[0]}'; there are ${all}`);
  }
  return names === undefined ? known : known.filter(({ name }) => names.includes(name));
}

/** Until all are polled again, and for a while after; the checker says whether it took too long. */
async function recover(sink: Sink, targets: readonly string[], signal: AbortSignal): Promise<void> {
  const restedMs = hostMs();
  const what = 'every target to be polled again';
  const deadlineMs = RECOVERY_MS.forgotten + 1_000;
  await until(() => signal.aborted || sink.hasAll(targets, restedMs), { what, deadlineMs }).catch(
    () => {},
  );
  await sleep(WATCH_MS, undefined, { signal }).catch(() => {});
}

interface Watched {
  readonly crew: Crew;
  readonly nemesis: Nemesis;
  readonly sink: Sink;
  readonly topology: Topology;
}

/** Tells of progress, notices that this very process stood still, and looks for violations where asked to. */
function watching(
  { crew, nemesis, sink, topology }: Watched,
  options: RunOptions & Place,
  found: AbortController,
) {
  const { history, recordings, onProgress, stopsAtViolation = false } = options;
  let stage: Progress['stage'] = 'starting';
  let stageFromMs = hostMs();
  let tickedMs = hostMs();
  let foundAtMs: number | null = null;
  const tell = () => {
    const { accepted, refused } = sink;
    const elapsedMs = hostMs() - stageFromMs;
    const { begun, underWay } = nemesis;
    const instances = crew.instances.size;
    onProgress?.({
      stage,
      elapsedMs,
      instances,
      accepted,
      refused,
      begun,
      underWay: [...underWay],
    });
  };
  const look = async () => {
    if (!stopsAtViolation || stage === 'starting' || foundAtMs !== null) return;
    const history = await withCommits(readHistory(recordings), topology).catch(() => []);
    if (foundAtMs !== null || judge(history).violations.length === 0) return;
    foundAtMs = hostMs();
    found.abort();
  };
  const tick = () => {
    const nowMs = hostMs();
    if (nowMs - tickedMs > STANDSTILL_MS)
      history.write('harness', 'stood.still', { fromMs: tickedMs });
    tickedMs = nowMs;
  };
  const timers = [
    setInterval(tell, PROGRESS_EVERY_MS),
    setInterval(() => void look(), CHECK_EVERY_MS),
    setInterval(tick, TICK_MS),
  ];
  return {
    get foundAtMs() {
      return foundAtMs;
    },
    next: (following: Progress['stage']) => {
      stage = following;
      stageFromMs = hostMs();
      return stageFromMs;
    },
    [Symbol.dispose]: () => {
      for (const timer of timers) clearInterval(timer);
    },
  };
}

export function keepHistory(report: RunReport, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const { variant, topology, seed, history } = report;
  const path = join(folder, `chaos-${variant}-${topology}-${seed}.jsonl`);
  saveHistory(path, history);
  return path;
}

function commit(): string {
  try {
    const root = new URL('..', import.meta.url);
    const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' });
    const isChanged = git('status', '--porcelain').trim() !== '';
    return git('rev-parse', '--short', 'HEAD').trim() + (isChanged ? ' with changes' : '');
  } catch {
    return 'unknown';
  }
}
