/** `holdfast targets ls`, `get`, `pause`, `resume` and `rm`. */
import { systemClock } from '../../../core/clock.ts';
import { ConfigError, HoldfastError } from '../../../core/errors.ts';
import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { StoredResult } from '../../../fleet/poll/result-writer.ts';
import type { TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { DEFAULT_TENANT } from '../../../intents/intent.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { counted, printable, spanOf, table, toJson, withShortNames } from '../../ui/text.ts';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly owner: string | null;
  readonly url?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly result: StoredResult | null;
  /** Why the record cannot be read. */
  readonly why?: string;
}

const TARGET_STATES = [
  'polled',
  'free',
  'paused',
  'unreadable',
  'starting',
  'running',
  'waiting',
  'silent',
  'stuck',
];
/** A line names at most this many targets. */
const MAX_NAMED = 3;

export interface TargetListFlags {
  readonly state?: string | undefined;
}

export async function listTargets(
  { flags, output }: Context,
  prefix: string,
  { state }: TargetListFlags,
): Promise<Exit> {
  const states = state?.split(',').map((word) => word.trim().toLowerCase());
  if (states?.some((word) => !TARGET_STATES.includes(word))) {
    const rule = `the states of targets are ${TARGET_STATES.join(', ')}; separate several with commas`;
    throw new ConfigError({ field: '--state', value: state, rule });
  }
  const all = await withHoldfast(flags, (holdfast) => rowsOf(holdfast, prefix));
  const rows = all.filter((row) => states?.includes(row.state) ?? true);
  output.result(rows, () => {
    if (rows.length === 0 && prefix !== '')
      return `No target id starts with '${printable(prefix)}'.\n`;
    if (rows.length === 0 && states !== undefined) return `No target is ${states.join(' or ')}.\n`;
    if (rows.length === 0) return 'There are no targets. Add one: holdfast targets add URL\n';
    const cells = rows.map((row) => [
      row.id,
      row.state,
      row.owner === null ? '-' : shortName(row.owner),
      row.why ?? lastResultText(row.result, row.owner),
      withoutCredentials(row.url ?? '-'),
    ]);
    const lines = [['ID', 'STATE', 'OWNER', 'LAST RESULT', 'URL'], ...cells];
    return output.titled(
      table(
        lines.map((line) => line.map(printable)),
        output.columns,
      ),
    );
  });
  return EXIT.ok;
}

async function rowsOf(holdfast: Holdfast, prefix: string): Promise<Row[]> {
  // In this order: the view discovers records of other programs if no instance does.
  const view = await holdfast.fleet.view();
  const { targets, unreadable } = await holdfast.targets.list();
  const shown = targets.filter(({ id }) => id.startsWith(prefix));
  const results = await holdfast.fleet.results(shown.map(({ id }) => id));
  const owners = new Map(view.targets.map(({ target, owner }) => [target, owner]));
  const broken = unreadable.filter(({ id }) => id.startsWith(prefix));
  return [
    ...shown.map((target) => {
      const { id, url, everyMs } = target;
      const owner = owners.get(id) ?? null;
      const result = results.get(id) ?? null;
      return { id, state: stateOf(target, owner, result), owner, url, everyMs, result };
    }),
    ...broken.map(({ id, why }) => ({ id, state: 'unreadable', owner: null, result: null, why })),
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function stateOf(
  { kind, isPaused }: TargetRecord,
  owner: string | null,
  result: StoredResult | null,
): string {
  if (kind !== 'poll') return kind;
  if (isPaused) return 'paused';
  if (owner === null) return 'free';
  // The result of a task says how it is doing; that of an earlier owner says nothing.
  if (result?.state !== undefined) return result.by === owner ? result.state : 'starting';
  return 'polled';
}

export async function showTarget({ flags, output }: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  const { target, result, view } = await withHoldfast(flags, async (holdfast) => {
    const target = await holdfast.targets.get(id);
    if (target === null) throw await whyNoTarget(holdfast, id);
    const [results, view] = await Promise.all([
      holdfast.fleet.results([id]),
      holdfast.fleet.view(),
    ]);
    return { target, result: results.get(id) ?? null, view };
  });
  const place = view.targets.find((one) => one.target === id);
  const owner = place?.owner ?? null;
  const state = stateOf(target, owner, result);
  output.result({ ...target, state, owner, why: place?.text ?? null, result }, () =>
    described({ target, state, place, result }),
  );
  return EXIT.ok;
}

interface Described {
  readonly target: TargetRecord;
  readonly state: string;
  readonly place: FleetView['targets'][number] | undefined;
  readonly result: StoredResult | null;
}

function described({ target, state, place, result }: Described): string {
  const { id, kind, url, everyMs, timeoutMs, command, data, revision } = target;
  const lines: (readonly [string, string])[] = [
    ['id', id],
    ['kind', kind],
    ['state', state],
    ['url', withoutCredentials(url ?? '-')],
    ['every', everyMs === undefined ? 'as the instances are configured' : spanOf(everyMs)],
    ...(timeoutMs === undefined ? [] : [['timeout', spanOf(timeoutMs)] as const]),
    ...(command === undefined ? [] : [['command', command] as const]),
    ...Object.entries(data).map(([name, value]) => [name, toJson(value)] as const),
    ['owner', place?.owner ?? '-'],
    ['why', whyText(state, place)],
    ['revision', String(revision)],
    ['last result', lastResultText(result, place?.owner ?? null)],
  ];
  if (result !== null) lines.push(['by', result.by], ['value', toJson(result.value ?? null)]);
  return table(lines.map((line) => line.map(printable)));
}

function whyText(state: string, place: Described['place']): string {
  if (place !== undefined) return withShortNames(place.text);
  return state === 'paused' ? 'it is paused, so no instance polls it' : '-';
}

/**
 * The outcome of the last poll or the state of the task, and its age. `owner`: of the target now.
 */
export function lastResultText(result: StoredResult | null, owner: string | null): string {
  if (result === null) return '-';
  const nowMs = systemClock.wallMs();
  const since = spanOf(Math.max(0, nowMs - result.at));
  const ago = `${since} ago`;
  const why = withoutCredentials(result.error ?? 'no reason given');
  const times = (result.failures ?? 0) > 1 ? `${result.failures} times in a row, ` : '';
  const next = result.nextAt === undefined ? '' : nextText(result.nextAt - nowMs, times);
  if (result.state !== undefined && owner !== result.by) return `not running, last seen ${ago}`;
  if (result.state === 'running') return `running for ${since}`;
  if (result.state === 'waiting')
    return `${result.ok ? `returned ${ago}` : `failed ${ago}: ${why}`}${next}`;
  if (result.state !== undefined) return `${result.state} since ${since}: ${why}`;
  if (!result.ok) return `failed ${ago}: ${why}${next}`;
  const { status } = (result.value ?? {}) as { status?: unknown };
  return `${typeof status === 'number' ? status : 'ok'} in ${spanOf(result.tookMs)}, ${ago}`;
}

/** When it is tried again after a failure. */
function nextText(inMs: number, times: string): string {
  return inMs > 0 ? ` (${times}next in ${spanOf(inMs)})` : ` (${times}next now)`;
}

const PAST = { pause: 'paused', resume: 'resumed', rm: 'removed' } as const;

interface Outcome {
  readonly id: string;
  readonly changed: boolean;
  readonly error?: Error | undefined;
}

/** Pauses, resumes or removes each target. One that fails does not stop the others. */
export async function changeTargets(
  { flags, output }: Context,
  verb: keyof typeof PAST,
  ids: readonly string[],
): Promise<Exit> {
  for (const id of ids) checkTargetId(id, 'ID');
  const outcomes = await withHoldfast(
    flags,
    async (holdfast) => {
      const done: Outcome[] = [];
      for (const id of ids) done.push(await changeTarget(holdfast, verb, id));
      return done;
    },
    { history: 'on' },
  );
  output.result(
    outcomes.map(({ error, ...rest }) => ({ ...rest, ...(error && { error: codeOf(error) }) })),
    () => {
      const changed = outcomes.filter((outcome) => outcome.changed);
      const same = outcomes.filter((outcome) => !outcome.changed && outcome.error === undefined);
      const was = same.length === 1 ? 'was' : 'were';
      const lines = [
        ...(changed.length > 0 ? [`${named(changed)} ${PAST[verb]}.`] : []),
        ...(same.length > 0 ? [`${named(same)} ${was} already ${PAST[verb]}.`] : []),
      ];
      return lines.map((line) => `${printable(line)}\n`).join('');
    },
  );
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  for (const error of failed) output.complain(error);
  return failed.length > 0 ? EXIT.no : EXIT.ok;
}

async function changeTarget(
  holdfast: Holdfast,
  verb: keyof typeof PAST,
  id: string,
): Promise<Outcome> {
  const { targets } = holdfast;
  const act = {
    pause: async () => (await targets.pause(id)).changed,
    resume: async () => (await targets.resume(id)).changed,
    rm: () => targets.remove(id).then(() => true),
  };
  try {
    const changed = await act[verb]();
    const action = `session.${verb === 'rm' ? 'remove' : verb}`;
    if (changed) audit(holdfast, { action, subject: id });
    return { id, changed };
  } catch (error) {
    if (!(error instanceof HoldfastError) || !/^SESSION_/.test(error.code)) throw error;
    const isAbsent = error.code === 'SESSION_NOT_FOUND';
    return { id, changed: false, error: isAbsent ? await whyNoTarget(holdfast, id) : error };
  }
}

function named(outcomes: readonly Outcome[]): string {
  if (outcomes.length > MAX_NAMED) return counted(outcomes.length, 'target');
  return outcomes.map(({ id }) => id).join(', ');
}

function codeOf(error: Error): string {
  return error instanceof HoldfastError || error instanceof CliError ? error.code : 'INTERNAL';
}

/** No target has this id. A session may have it: then the message says what to do with that. */
async function whyNoTarget(holdfast: Holdfast, id: string): Promise<CliError> {
  const session = await holdfast.intents().session(id, null);
  if (session !== null) return isSession(session);
  const message = `target '${id}' does not exist. List the targets: holdfast targets ls`;
  return new CliError(EXIT.no, 'SESSION_NOT_FOUND', message, { session: id });
}

function isSession({ id, tenant, state }: IntentSession): CliError {
  const whose = tenant === DEFAULT_TENANT ? '' : `--tenant ${tenant} `;
  const next =
    state === 'ENDED'
      ? `It has ended, and is removed automatically. Show it: holdfast sessions get ${id}`
      : `Show it: holdfast sessions get ${id}. Stop it: holdfast intents stop ${whose}${id}`;
  const message = `'${id}' is a session that an intent started, not a target. ${next}`;
  return new CliError(EXIT.no, 'SESSION_OF_INTENT', message, { session: id });
}
