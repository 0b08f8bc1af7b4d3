/** One lane: the owners of a target and the gaps between them, or how many targets an instance had. */
import type { ComponentChildren } from 'preact';
import { members } from '../../data/fleet.ts';
import { type Gap, lengthOf } from '../../data/gaps.ts';
import { markOf, nameOf } from '../../data/palette.ts';
import { sentenceFor } from '../../data/sentence.ts';
import type { Mark } from '../../data/story.ts';
import { clockTime, counted, exactly } from '../../data/words.ts';
import { Icon } from '../../parts/icon.tsx';
import { hrefOf } from '../../router.ts';
import { type Piece, type Place, piecesOf, placeOf, type Window } from './lane.ts';
import { lifeOf, type Stay, type Step } from './owned.ts';
import type { Scene } from './scene.ts';
import { Glyph, SYMBOLS } from './symbols.tsx';

/** What can be pressed is at least this wide. */
const LEAST_PX = 14;
/** From here on there is room for words. */
const WORD_PX = 44;

export function TargetLane({ id, scene }: { id: string; scene: Scene }) {
  scene.reading.version.value;
  const window = scene.window.value;
  const trackPx = scene.trackPx.value;
  const pieces = piecesOf(scene.tenures(id), scene.gaps(id), window, LEAST_PX / trackPx);
  return (
    <>
      <a class="tl-label mono" href={hrefOf('targets', id)} title={id}>
        {id}
      </a>
      <div class="tl-track" data-target={id}>
        {pieces.map((piece) => (
          <PieceOf key={keyOf(piece)} piece={piece} scene={scene} trackPx={trackPx} />
        ))}
        <Marks marks={scene.reading.story.marksOf(id)} scene={scene} />
      </div>
    </>
  );
}

function keyOf(piece: Piece): string {
  if (piece.kind === 'tenure') return `t${piece.tenure.fence ?? piece.tenure.holder}`;
  return `g${piece.kind === 'gap' ? piece.gap.from : (piece.gaps[0]?.from ?? 0)}`;
}

function PieceOf({ piece, scene, trackPx }: { piece: Piece; scene: Scene; trackPx: number }) {
  const widthPx = piece.width * trackPx;
  if (piece.kind === 'tenure') return <Bar piece={piece} widthPx={widthPx} />;
  const choose = () => {
    scene.chosen.value =
      piece.kind === 'gap' ? { kind: 'gap', gap: piece.gap } : { kind: 'gaps', gaps: piece.gaps };
  };
  const kind = piece.kind === 'gap' ? piece.gap.kind : 'crowd';
  const words =
    piece.kind === 'gap' ? wordsOf(piece.gap, scene) : counted(piece.gaps.length, 'change');
  const inside =
    piece.kind === 'gap' ? signOf(piece.gap, widthPx, scene) : String(piece.gaps.length);
  const chosen = scene.chosen.value;
  const isChosen = chosen?.kind === 'gap' && piece.kind === 'gap' && isSame(chosen.gap, piece.gap);
  return (
    <button
      type="button"
      class={`tl-gap ${kind}${isChosen ? ' chosen' : ''}`}
      style={pressable(piece, widthPx)}
      title={words}
      aria-pressed={isChosen}
      data-gap={kind}
      onClick={choose}
    >
      <span aria-hidden="true">{inside}</span>
      <span class="visually-hidden">{words}. Explain</span>
    </button>
  );
}

function isSame(a: Gap, b: Gap): boolean {
  return (
    a.target === b.target &&
    a.before?.fence === b.before?.fence &&
    a.after?.fence === b.after?.fence
  );
}

function wordsOf(gap: Gap, scene: Scene): string {
  const { kind, target, from, before, after } = gap;
  const length = exactly(lengthOf(gap, scene.wallNow()));
  const whose = `from ${before === null ? 'no owner' : nameOf(before.holder)} to ${after === null ? 'no owner yet' : nameOf(after.holder)}`;
  return `${NAMES[kind]} of ${target}, ${length}, ${whose}, at ${clockTime(from)}`;
}

const NAMES: Readonly<Record<Gap['kind'], string>> = {
  failover: 'Gap after a failure',
  handover: 'Handover',
  revoked: 'Gap after a revocation',
  paused: 'Pause',
  unsaid: 'Gap',
};

function signOf(gap: Gap, widthPx: number, scene: Scene): ComponentChildren {
  if (widthPx >= WORD_PX) return exactly(lengthOf(gap, scene.wallNow()));
  if (gap.kind === 'handover') return <Icon name="right" />;
  return { failover: '!', revoked: 'R', paused: 'P', unsaid: '?' }[gap.kind];
}

/** Wide enough to be hit; around the middle of what it stands for. */
function pressable({ left, width }: Place, widthPx: number) {
  if (widthPx >= LEAST_PX) return { left: percent(left), width: percent(width) };
  return {
    left: `clamp(0px, calc(${percent(left + width / 2)} - ${LEAST_PX / 2}px), calc(100% - ${LEAST_PX}px))`,
    width: `${LEAST_PX}px`,
  };
}

function Bar({ piece, widthPx }: { piece: Extract<Piece, { kind: 'tenure' }>; widthPx: number }) {
  const { tenure, isOpenLeft, isOpenRight, left, width } = piece;
  const { holder, fence, from, ending } = tenure;
  const { colour, letters } = markOf(holder);
  const since = from === null ? 'since before the log begins' : `from ${clockTime(from)}`;
  const until = ending === null ? 'and has it now' : `until ${clockTime(ending.at)}`;
  return (
    <div
      class={`tl-bar${isOpenLeft ? ' open-left' : ''}${isOpenRight ? ' open-right' : ''}`}
      style={{ left: percent(left), width: percent(width), '--owner-colour': colour }}
      title={`${nameOf(holder)} owned it ${since} ${until}${fence === null ? '' : `, fence ${fence}`}`}
      data-owner={holder}
    >
      {widthPx >= WORD_PX * 2 ? nameOf(holder) : widthPx >= 20 ? letters : ''}
    </div>
  );
}

/** Marks that are too close together are drawn as one, with their number. */
export function Marks({ marks, scene }: { marks: readonly Mark[]; scene: Scene }) {
  const window = scene.window.value;
  const trackPx = scene.trackPx.value;
  const groups: { left: number; marks: Mark[] }[] = [];
  for (const mark of marks) {
    const place = placeOf(mark.at, mark.at, window);
    if (place === null) continue;
    const last = groups.at(-1);
    if (last !== undefined && (place.left - last.left) * trackPx < 18) last.marks.push(mark);
    else groups.push({ left: place.left, marks: [mark] });
  }
  return (
    <>
      {groups.map(({ left, marks: together }) => (
        <MarkButton key={together[0]?.entry.position} left={left} marks={together} scene={scene} />
      ))}
    </>
  );
}

function MarkButton({
  left,
  marks,
  scene,
}: {
  left: number;
  marks: readonly Mark[];
  scene: Scene;
}) {
  const [first] = marks;
  if (first === undefined) return null;
  const words = marks
    .slice(0, 8)
    .map(
      (mark) =>
        `${clockTime(mark.at)} ${SYMBOLS[mark.kind].name}: ${nameOf(mark.entry.instance)} ${sentenceFor(mark.entry)}`,
    )
    .join('\n');
  return (
    <button
      type="button"
      class="tl-mark"
      style={{ left: `clamp(0px, calc(${percent(left)} - 9px), calc(100% - 18px))` }}
      title={words}
      data-mark={first.kind}
      onClick={() => {
        scene.chosen.value = { kind: 'marks', marks };
      }}
    >
      <Glyph kind={first.kind} />
      {marks.length > 1 && <sup aria-hidden="true">{marks.length}</sup>}
      <span class="visually-hidden">{words}</span>
    </button>
  );
}

const TRACK_HEIGHT = 22;

export function MemberLane({ id, scene, most }: { id: string; scene: Scene; most: number }) {
  const window = scene.window.value;
  const marks = scene.marksBy.value.get(id) ?? [];
  const present = members.value.find((member) => member.id === id);
  const { stays, drains } = lifeOf(marks, present !== undefined);
  const steps = scene.owned.value.get(id) ?? [];
  const { colour } = markOf(id);
  const last = present?.owned ?? 0;
  return (
    <>
      <a class="tl-label" href={hrefOf('members', id)} title={id}>
        <i class="tl-letters" style={{ '--owner-colour': colour }} aria-hidden="true">
          {markOf(id).letters}
        </i>
        {nameOf(id)}
        <span class="quiet small"> {present === undefined ? 'gone' : last}</span>
      </a>
      <div class="tl-track" data-member={id}>
        <Stays stays={stays} window={window} name="alive" />
        <Stays stays={drains} window={window} name="draining" />
        <svg
          class="tl-steps"
          viewBox={`0 0 1000 ${TRACK_HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${nameOf(id)}: ${present === undefined ? 'gone' : counted(last, 'target')}`}
        >
          <path d={areaOf(steps, window, most)} fill={colour} />
        </svg>
        <Marks marks={marks.filter(({ kind }) => kind !== 'operator')} scene={scene} />
      </div>
    </>
  );
}

function Stays({ stays, window, name }: { stays: readonly Stay[]; window: Window; name: string }) {
  return (
    <>
      {stays.map(({ from, to }) => {
        const place = placeOf(
          from ?? Number.NEGATIVE_INFINITY,
          to ?? Number.POSITIVE_INFINITY,
          window,
        );
        if (place === null) return null;
        const style = { left: percent(place.left), width: percent(place.width) };
        return <div key={from ?? 0} class={`tl-stay ${name}`} style={style} title={name} />;
      })}
    </>
  );
}

/** Steps as an area; more than two to a thousandth of the width are not to be seen. */
function areaOf(steps: readonly Step[], window: Window, most: number): string {
  const end = Math.min(window.to, window.now);
  const scale = (TRACK_HEIGHT - 2) / Math.max(1, most);
  const x = (at: number) =>
    Math.round(((at - window.from) / (window.to - window.from)) * 1_000 * 2) / 2;
  let owned = 0;
  let path = '';
  let lastX = 0;
  for (const step of steps) {
    if (step.at > end) break;
    if (step.at <= window.from) {
      owned = step.owned;
      continue;
    }
    if (path === '') path = `M0 ${TRACK_HEIGHT}V${TRACK_HEIGHT - owned * scale}`;
    const at = x(step.at);
    if (at > lastX) path += `H${at}`;
    lastX = at;
    owned = step.owned;
    path += `V${TRACK_HEIGHT - owned * scale}`;
  }
  if (path === '') path = `M0 ${TRACK_HEIGHT}V${TRACK_HEIGHT - owned * scale}`;
  return `${path}H${x(end)}V${TRACK_HEIGHT}Z`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(4)}%`;
}
