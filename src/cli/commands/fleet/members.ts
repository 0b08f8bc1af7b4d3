import { systemClock } from '../../../core/clock.ts';
import { shortName } from '../../../core/ids.ts';
import { MemberNotFoundError } from '../../../fleet/errors.ts';
import type { MemberView } from '../../../fleet/watch/fleet.ts';
import type { Context } from '../../context.ts';
import { EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { agoText, jsonFacts, printable, spanOf, table } from '../../ui/text.ts';

export async function members({ flags, output }: Context): Promise<Exit> {
  const view = await withHoldfast(flags, (holdfast) => holdfast.fleet.view());
  output.result(
    view.members.map((member) => jsonFacts({ ...member })),
    () => {
      if (view.members.length === 0) return 'No instance runs. Start one: holdfast up\n';
      return output.titled(memberTable(view.members, systemClock.wallMs(), output.columns));
    },
  );
  return EXIT.ok;
}

type Column = readonly [head: string, cell: (member: MemberView, nowMs: number) => string];

const COLUMNS: readonly Column[] = [
  ['NAME', ({ id }) => printable(shortName(id))],
  ['STATE', (member) => stateOf(member)],
  ['OWNS', ({ owned }) => String(owned)],
  ['SHARE', ({ isForeign, quota }) => (isForeign ? '-' : String(quota))],
  ['WEIGHT', ({ isForeign, weight }) => (isForeign ? '-' : String(weight))],
  ['HEARTBEAT', heartbeatOf],
];
/** Columns that a narrow terminal leaves out. `--json` has them too. */
const EXTRA_COLUMNS: readonly Column[] = [
  ['UPTIME', ({ startedAt }, nowMs) => spanOrNone(startedAt === null ? null : nowMs - startedAt)],
  ['RENEW P99', ({ vitals }) => spanOrNone(vitals?.renewP99Ms ?? null)],
];
const LAST_COLUMNS: readonly Column[] = [
  ['VERSION', ({ version }) => printable(version ?? '-')],
  ['ID', ({ id }) => printable(id)],
];

export function memberTable(
  all: readonly MemberView[],
  nowMs: number,
  columns = Number.POSITIVE_INFINITY,
): string {
  const drawn = (shown: readonly Column[]) =>
    table([
      shown.map(([head]) => head),
      ...all.map((member) => shown.map(([, cell]) => cell(member, nowMs))),
    ]);
  const whole = drawn([...COLUMNS, ...EXTRA_COLUMNS, ...LAST_COLUMNS]);
  const fits = whole.split('\n').every(({ length }) => length <= columns);
  return fits ? whole : drawn([...COLUMNS, ...LAST_COLUMNS]);
}

/** The age of its heartbeat; if it does not say how long one lasts, the time left. */
function heartbeatOf({ expiresInMs, beatTtlMs }: MemberView): string {
  if (beatTtlMs === null) return `ends in ${spanOf(expiresInMs)}`;
  return agoText(expiresInMs, beatTtlMs);
}

function spanOrNone(ms: number | null): string {
  return ms === null ? '-' : spanOf(Math.max(0, ms));
}

export function stateOf({ isForeign, isDraining }: MemberView): string {
  if (isForeign) return 'foreign';
  return isDraining ? 'draining' : 'up';
}

/** Finds an instance by its id, its short name, its name, or a unique start of one of these. */
export function findMember(all: readonly MemberView[], text: string): MemberView {
  const exact = all.filter(({ id, name }) => [id, shortName(id), name].includes(text));
  const byId = exact.find(({ id }) => id === text || shortName(id) === text);
  const found =
    byId !== undefined
      ? [byId]
      : exact.length > 0
        ? exact
        : all.filter(({ id }) => [id, shortName(id)].some((form) => form.startsWith(text)));
  const [member] = found;
  if (member === undefined || text === '') throw new MemberNotFoundError({ member: text });
  if (found.length === 1) return member;
  const names = found.map(({ id }) => shortName(id)).join(', ');
  throw usageError(`'${text}' matches several instances: ${names}. Give a longer name.`);
}
