/** `holdfast map` as text: a block for each instance, with a bar and its targets. */
import { shortName } from '../../../core/ids.ts';
import type { FleetView, MemberView } from '../../../fleet/watch/fleet.ts';
import type { Style } from '../../ui/output.ts';
import { counted, cut, printable } from '../../ui/text.ts';
import { stateOf } from './members.ts';

export interface DrawingOptions {
  readonly columns: number;
  /** Names every target. */
  readonly isWhole: boolean;
  /** Without characters that a simple terminal may not have. */
  readonly isPlain: boolean;
  style(style: Style, text: string): string;
}

/** The lines for names of targets, shared by all blocks, so that the map fits on a screen. */
const NAME_LINES = 30;
const MAX_NAME_LINES = 4;
const MIN_COLUMNS = 40;
const MAX_BAR = 40;
const MAX_NAME = 40;
const INDENT = '  ';

type Target = FleetView['targets'][number];

/** The targets of one owner: an instance, one that has ended, or none. */
interface Block {
  readonly title: string;
  readonly member: MemberView | null;
  readonly targets: readonly Target[];
  readonly note: string;
}

export function drawMap(view: FleetView, options: DrawingOptions): string {
  const { members, targets } = view;
  if (members.length === 0 && targets.length === 0)
    return 'No instance runs, and there are no targets. Start with: holdfast up\n';
  const blocks = blocksOf(view);
  const linesEach = Math.min(MAX_NAME_LINES, Math.floor(NAME_LINES / blocks.length));
  const most = options.isWhole ? Number.POSITIVE_INFINITY : linesEach;
  const columns = Math.max(MIN_COLUMNS, options.columns);
  const moving = targets.filter(({ reason }) => reason === 'moving').length;
  const head = `${counted(targets.length, 'target')} on ${counted(members.length, 'instance')}`;
  const title = `${head}${moving > 0 ? `, ${moving} moving` : ''}`;
  const body = drawBlocks(blocks, columns, most, options);
  return `${options.style('bold', title)}\n\n${body}`;
}

function blocksOf({ members, targets }: FleetView): Block[] {
  const owned = grouped(targets, ({ owner }) => owner);
  const blocks: Block[] = members.map((member) => ({
    title: shortName(member.id),
    member,
    targets: owned.get(member.id) ?? [],
    note: noteOf(member),
  }));
  const known = new Set<string | null>(members.map(({ id }) => id));
  for (const [owner, held] of owned) {
    if (owner === null || known.has(owner)) continue;
    const note = 'no heartbeat: these leases expire';
    blocks.push({ title: shortName(owner), member: null, targets: held, note });
  }
  const free = owned.get(null) ?? [];
  if (free.length > 0)
    blocks.push({ title: 'no owner', member: null, targets: free, note: whyFree(free) });
  return blocks;
}

function noteOf(member: MemberView): string {
  const state = stateOf(member);
  const weight = member.weight === 1 ? '' : `weight ${member.weight}`;
  return [state === 'up' ? '' : state, weight].filter(Boolean).join(', ');
}

function whyFree(free: readonly Target[]): string {
  const reasons = grouped(free, ({ reason }) => reason);
  return [...reasons]
    .map(([reason, of]) => (reasons.size === 1 ? reason : `${of.length} ${reason}`))
    .join(', ');
}

function drawBlocks(
  blocks: readonly Block[],
  columns: number,
  maxLines: number,
  options: DrawingOptions,
): string {
  const shares = blocks.map(({ member, targets }) => Math.max(targets.length, member?.quota ?? 0));
  const largest = Math.max(1, ...shares);
  const nameWidth = Math.min(
    MAX_NAME,
    Math.floor(columns / 3),
    Math.max(...blocks.map(({ title }) => title.length)),
  );
  const counts = blocks.map(countOf);
  const countWidth = Math.max(...counts.map(({ length }) => length));
  const noteWidth = Math.max(0, ...blocks.map(({ note }) => note.length));
  const room = columns - nameWidth - countWidth - Math.min(noteWidth, 20) - 6;
  const barWidth = Math.max(4, Math.min(MAX_BAR, room));
  return blocks
    .map((block, i) => {
      const name = cut(printable(block.title), nameWidth).padEnd(nameWidth);
      const bar = barOf(block, barWidth / largest, barWidth, options);
      const line = `${name}  ${bar}  ${(counts[i] ?? '').padStart(countWidth)}`;
      const noted = block.note === '' ? line : `${line}  ${options.style('yellow', block.note)}`;
      return `${noted}\n${namesOf(block, columns, maxLines, options)}`;
    })
    .join('');
}

function countOf({ member, targets }: Block): string {
  if (member === null || member.isForeign) return `${targets.length}`;
  return `${targets.length} of ${member.quota}`;
}

/** A bar of its targets, and of what is missing from its share. */
function barOf(
  { member, targets }: Block,
  perTarget: number,
  width: number,
  { isPlain, style }: DrawingOptions,
): string {
  // One target of ten thousand is visible too.
  const length = (count: number) => (count === 0 ? 0 : Math.max(1, Math.round(count * perTarget)));
  const full = Math.min(width, length(targets.length));
  const share = Math.min(width, length(member?.quota ?? 0));
  const [block, shade] = isPlain ? ['#', '.'] : ['█', '░'];
  const colour = member === null || member.isDraining ? 'yellow' : 'green';
  const lacking = Math.max(0, share - full);
  const rest = ' '.repeat(width - full - lacking);
  return `${style(colour, block.repeat(full))}${style('dim', shade.repeat(lacking))}${rest}`;
}

/** The names of its targets, in at most `maxLines` lines. */
function namesOf(
  { targets }: Block,
  columns: number,
  maxLines: number,
  { style, isPlain }: DrawingOptions,
): string {
  const arrow = isPlain ? '>' : '→';
  const names = targets.map(({ target, reason, planned }) => {
    const to = reason === 'moving' && planned !== null ? `${arrow}${shortName(planned)}` : '';
    return printable(`${target}${to}`);
  });
  const lines: string[] = [];
  let line = '';
  let shown = 0;
  for (const name of names) {
    const more = `  … ${names.length - shown} more`;
    const isLast = lines.length + 1 >= maxLines;
    const room = columns - INDENT.length - (isLast && shown + 1 < names.length ? more.length : 0);
    if (line !== '' && line.length + 2 + name.length > room) {
      if (isLast) break;
      lines.push(line);
      line = '';
    }
    if (maxLines === 0) break;
    line += `${line === '' ? '' : '  '}${cut(name, columns - INDENT.length)}`;
    shown += 1;
  }
  if (line !== '')
    lines.push(shown < names.length ? `${line}  … ${names.length - shown} more` : line);
  return lines.map((each) => `${INDENT}${style('dim', each)}\n`).join('');
}

function grouped<K>(targets: readonly Target[], by: (target: Target) => K): Map<K, Target[]> {
  const groups = new Map<K, Target[]>();
  for (const target of targets) {
    const group = groups.get(by(target)) ?? [];
    groups.set(by(target), group);
    group.push(target);
  }
  return groups;
}
