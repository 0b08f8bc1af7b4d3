/** The commands that show sessions and change what is there. Adding is in a file of its own. */
import { ConfigError, HoldfastError } from '../../../core/errors.ts';
import { checkTargetId, shortName } from '../../../core/ids.ts';
import type { StoredResult } from '../../../fleet/poll/results.ts';
import { SessionNotFoundError } from '../../../fleet/targets/errors.ts';
import type { TargetKind, TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { audit } from '../../audit.ts';
import type { Context } from '../../context.ts';
import { type CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { counted, printable, spanOf, table, toJson, withShortNames } from '../../ui/text.ts';
import { describedSession, sessionJson } from '../intents/session-words.ts';
import { findIntentSession, lsIntents, ofIntent } from './intent-sessions.ts';
import { lastOf } from './last-result.ts';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly owner: string | null;
  readonly url?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly result: StoredResult | null;
  /** Why it can not be read. */
  readonly why?: string;
}

/** Of what is polled. */
const STATES = ['polled', 'free', 'paused', 'unreadable'];

export interface LsFlags {
  readonly kind: TargetKind;
  readonly state?: string;
}

export async function ls(
  context: Context,
  prefix: string,
  { kind, state }: LsFlags,
): Promise<Exit> {
  if (kind !== 'poll') return lsIntents(context, { kind, prefix, state });
  const { flags, output } = context;
  const states = state?.split(',').map((word) => word.trim().toLowerCase());
  if (states?.some((word) => !STATES.includes(word))) {
    const rule = `what is polled is ${STATES.join(', ')}; name several with commas between them`;
    throw new ConfigError({ field: '--state', value: state, rule });
  }
  const all = await withHoldfast(flags, (holdfast) => rowsOf(holdfast, prefix));
  const rows = all.filter((row) => states?.includes(row.state) ?? true);
  output.result(rows, () => {
    if (rows.length === 0 && prefix !== '')
      return `No session begins with '${printable(prefix)}'.\n`;
    if (rows.length === 0 && states !== undefined) return 'There are no such sessions.\n';
    if (rows.length === 0) return 'There are no sessions. Add one: holdfast sessions add URL\n';
    const cells = rows.map((row) => [
      row.id,
      row.state,
      row.owner === null ? '-' : shortName(row.owner),
      row.why ?? lastOf(row.result),
      withoutCredentials(row.url ?? '-'),
    ]);
    const [head = '', ...lines] = table(
      [['ID', 'STATE', 'OWNER', 'LAST RESULT', 'URL'], ...cells].map((row) => row.map(printable)),
      output.columns,
    ).split('\n');
    return [output.style('bold', head), ...lines].join('\n');
  });
  return EXIT.ok;
}

async function rowsOf(holdfast: Holdfast, prefix: string): Promise<Row[]> {
  // In this order: the view looks for what other programs wrote, if nobody else does.
  const view = await holdfast.fleet.view();
  const { targets: sessions, unreadable } = await holdfast.targets.list();
  const shown = sessions.filter(({ id }) => id.startsWith(prefix));
  const results = await holdfast.fleet.results(shown.map(({ id }) => id));
  const owners = new Map(view.targets.map(({ target, owner }) => [target, owner]));
  const broken = unreadable.filter(({ id }) => id.startsWith(prefix));
  return [
    ...shown.map((session) => {
      const { id, url, everyMs } = session;
      const owner = owners.get(id) ?? null;
      const result = results.get(id) ?? null;
      return { id, state: stateOf(session, owner), owner, url, everyMs, result };
    }),
    ...broken.map(({ id, why }) => ({ id, state: 'unreadable', owner: null, result: null, why })),
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function stateOf({ kind, isPaused }: TargetRecord, owner: string | null): string {
  if (kind !== 'poll') return kind;
  if (isPaused) return 'paused';
  return owner === null ? 'free' : 'polled';
}

export async function get({ flags, output }: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  const found = await withHoldfast(flags, async (holdfast) => {
    const session = await holdfast.targets.get(id);
    const wanted = session === null ? await findIntentSession(holdfast, id) : null;
    if (wanted !== null) return wanted;
    if (session === null) throw new SessionNotFoundError({ session: id });
    const [results, view] = await Promise.all([
      holdfast.fleet.results([id]),
      holdfast.fleet.view(),
    ]);
    return { session, result: results.get(id) ?? null, view };
  });
  if (!('session' in found)) {
    output.result(sessionJson(found), () => describedSession(found));
    return EXIT.ok;
  }
  const { session, result, view } = found;
  const place = view.targets.find(({ target }) => target === id);
  const owner = place?.owner ?? null;
  const state = stateOf(session, owner);
  output.result({ ...session, state, owner, why: place?.text ?? null, result }, () =>
    described({ session, state, place, result }),
  );
  return EXIT.ok;
}

interface About {
  readonly session: TargetRecord;
  readonly state: string;
  readonly place: FleetView['targets'][number] | undefined;
  readonly result: StoredResult | null;
}

function described({ session, state, place, result }: About): string {
  const { id, kind, url, everyMs, data, revision } = session;
  const lines: (readonly [string, string])[] = [
    ['id', id],
    ['kind', kind],
    ['state', state],
    ['url', withoutCredentials(url ?? '-')],
    ['every', everyMs === undefined ? 'as the instances say' : spanOf(everyMs)],
    ...Object.entries(data).map(([name, value]) => [name, toJson(value)] as const),
    ['owner', place?.owner ?? '-'],
    [
      'why',
      place
        ? withShortNames(place.text)
        : state === 'paused'
          ? 'it is paused, so nobody polls it'
          : '-',
    ],
    ['revision', String(revision)],
    ['last result', lastOf(result)],
  ];
  if (result !== null) lines.push(['by', result.by], ['value', toJson(result.value ?? null)]);
  return table(lines.map((line) => line.map(printable)));
}

const VERBS = { pause: 'paused', resume: 'resumed', rm: 'removed' } as const;

/** Pauses, resumes or removes each; one that fails does not keep the others from it. */
export async function change(
  { flags, output }: Context,
  verb: keyof typeof VERBS,
  ids: readonly string[],
): Promise<Exit> {
  for (const id of ids) checkTargetId(id, 'ID');
  const outcomes = await withHoldfast(
    flags,
    async (holdfast) => {
      const { targets: sessions } = holdfast;
      const changes = {
        pause: async (id: string) => (await sessions.pause(id)).changed,
        resume: async (id: string) => (await sessions.resume(id)).changed,
        rm: (id: string) => sessions.remove(id).then(() => true),
      };
      const done: { id: string; changed: boolean; error?: HoldfastError | CliError }[] = [];
      for (const id of ids) {
        try {
          const changed = await changes[verb](id);
          done.push({ id, changed });
          const action = `session.${verb === 'rm' ? 'remove' : verb}`;
          if (changed) audit(holdfast, { action, subject: id });
        } catch (error) {
          if (!(error instanceof HoldfastError) || !/^SESSION_/.test(error.code)) throw error;
          const wanted = await findIntentSession(holdfast, id);
          done.push({ id, changed: false, error: wanted === null ? error : ofIntent(wanted) });
        }
      }
      return done;
    },
    { history: 'on' },
  );
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  const changed = outcomes.filter((outcome) => outcome.changed);
  const same = outcomes.filter((outcome) => !outcome.changed && outcome.error === undefined);
  output.result(
    outcomes.map(({ error, ...rest }) => ({ ...rest, ...(error && { error: error.code }) })),
    () => {
      const past = VERBS[verb];
      const what = (list: typeof outcomes) =>
        list.length <= 3 ? list.map(({ id }) => id).join(', ') : counted(list.length, 'session');
      const was = same.length === 1 ? 'was' : 'were';
      const lines = [
        ...(changed.length > 0 ? [`${what(changed)} ${past}.`] : []),
        ...(same.length > 0 ? [`${what(same)} ${was} so already.`] : []),
      ];
      return lines.map((line) => `${printable(line)}\n`).join('');
    },
  );
  for (const error of failed) output.complain(error);
  return failed.length > 0 ? EXIT.no : EXIT.ok;
}
