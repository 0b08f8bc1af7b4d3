/** The states of a lease, as a drawing; on a phone, as a list. The current one is filled, has a thicker line and is marked, so that it needs no colour. */
import { isNarrow } from '../../data/narrow.ts';
import { Icon } from '../../parts/icon.tsx';
import { MACHINE, nextOf, STEPS, type StateName, type Step, wordsOf } from './machine.ts';

const BOX = { width: 124, height: 40 };
const SIZE = { width: 760, height: 192 };
/** Two arrows between the same states lie beside each other. */
const APART = 8;

interface MachineProps {
  readonly states: readonly StateName[];
  readonly current: StateName;
}

export function Machine(props: MachineProps) {
  const { name, means } = MACHINE[props.current];
  return (
    <figure class="machine" data-state={props.current}>
      {isNarrow.value ? <List {...props} /> : <Drawing {...props} />}
      <figcaption>
        <strong>{name}.</strong> {means}
      </figcaption>
    </figure>
  );
}

function List({ states, current }: MachineProps) {
  return (
    <ul aria-label="States">
      {states.map((state) => (
        <li key={state} class={state === current ? 'lit' : ''}>
          <b>
            {state === current && <Icon name="dot" />}
            {MACHINE[state].name}
            {state === current && <span class="visually-hidden">, now</span>}
          </b>
          <span class="small"> then {nextOf(state, states)}</span>
        </li>
      ))}
    </ul>
  );
}

function Drawing({ states, current }: MachineProps) {
  const steps = STEPS.filter(({ from, to }) => states.includes(from) && states.includes(to));
  return (
    <svg viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} role="img" aria-label={wordsOf(current)}>
      <defs>
        <marker
          id="machine-arrow"
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="7"
          markerHeight="7"
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path d="M0 0 8 4 0 8Z" />
        </marker>
      </defs>
      {steps.map((step) => (
        <Arrow key={`${step.from} ${step.to}`} step={step} isNext={step.from === current} />
      ))}
      {states.map((state) => (
        <Box key={state} state={state} isLit={state === current} />
      ))}
    </svg>
  );
}

type Point = readonly [x: number, y: number];

function Box({ state, isLit }: { state: StateName; isLit: boolean }) {
  const { width, height } = BOX;
  const {
    name,
    at: [x, y],
  } = MACHINE[state];
  return (
    <g class={isLit ? 'state lit' : 'state'}>
      <rect {...{ x: x - width / 2, y: y - height / 2, width, height }} rx="8" />
      <text {...{ x, y }}>{name}</text>
    </g>
  );
}

interface Route {
  readonly path: string;
  readonly label: Point;
}

/** These two go around what lies between: above, and below. */
const DETOURS: Readonly<Record<string, Route>> = {
  'lost free': { path: 'M680 36V18Q680 10 672 10H88Q80 10 80 18V36', label: [380, 10] },
  'paused free': {
    path: 'M480 176V178Q480 186 472 186H16Q8 186 8 178V64Q8 56 16 56H18',
    label: [380, 186],
  },
};

function Arrow({ step, isNext }: { step: Step; isNext: boolean }) {
  const { path, label } = DETOURS[`${step.from} ${step.to}`] ?? straight(step);
  return (
    <g class={isNext ? 'step next' : 'step'}>
      <path d={path} marker-end="url(#machine-arrow)" />
      <text x={label[0]} y={label[1]}>
        {step.why}
      </text>
    </g>
  );
}

function straight({ from, to }: Step): Route {
  const [a, b] = [MACHINE[from].at, MACHINE[to].at];
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const length = Math.hypot(dx, dy);
  const hasReturn = STEPS.some((other) => other.from === to && other.to === from);
  const apart = hasReturn ? APART : 0;
  const side: Point = [(-dy / length) * apart, (dx / length) * apart];
  const [x1, y1] = edge(a, dx, dy, side);
  const [x2, y2] = edge(b, -dx, -dy, side);
  // Upright ones have room beside them, others above and below.
  const away = dx === 0 ? 3.6 : 1.3;
  return {
    path: `M${x1} ${y1}L${x2} ${y2}`,
    label: [(x1 + x2) / 2 + side[0] * away, (y1 + y2) / 2 + side[1] * away],
  };
}

/** Where the line between two middles leaves a box. */
function edge([x, y]: Point, dx: number, dy: number, [sx, sy]: Point): Point {
  const share = Math.min(
    dx === 0 ? Number.POSITIVE_INFINITY : BOX.width / 2 / Math.abs(dx),
    dy === 0 ? Number.POSITIVE_INFINITY : BOX.height / 2 / Math.abs(dy),
  );
  return [x + dx * share + sx, y + dy * share + sy];
}
