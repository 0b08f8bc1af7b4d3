/** Targets as cells with their ids, for fleets of a few hundred. */
import { Component } from 'preact';
import { useState } from 'preact/hooks';
import type { SeenTarget } from '../../data/fleet.ts';
import { markOf, nameOf } from '../../data/palette.ts';
import { isNotPreferred, levelOf, placeOnMap, STATES, wordsFor } from '../../data/states.ts';
import { termsOf, timeLeft } from '../../data/ttl.ts';
import { Icon } from '../../parts/icon.tsx';
import { hrefOf } from '../../router.ts';
import { MOVE_SHOWN_MS, pointed, spoken } from './pointed.ts';

export interface CellsProps {
  /** Changed in place … */
  readonly items: readonly SeenTarget[];
  /** … so this says when they have. */
  readonly version: number;
  readonly label: string;
}

export function Cells({ items, label }: CellsProps) {
  const [current, setCurrent] = useState<string | null>(null);
  // The tab key stops once; the arrow keys move from there.
  const stop = items.some(({ id }) => id === current) ? current : items[0]?.id;
  const onFocus = (event: FocusEvent) => {
    const id = idAt(event);
    setCurrent(id);
    pointed.value = id;
    spoken.value = id;
  };
  return (
    <ul
      class="cells"
      aria-label={label}
      onKeyDown={moveFocus}
      onFocusIn={onFocus}
      onPointerOver={(event) => {
        pointed.value = idAt(event) ?? pointed.value;
      }}
    >
      {items.map((target) => (
        <Cell key={target.id} target={target} isStop={target.id === stop} />
      ))}
    </ul>
  );
}

/** Drawn again only if the target has changed; the time bar runs by itself. */
class Cell extends Component<{ target: SeenTarget; isStop: boolean }> {
  override shouldComponentUpdate(next: { target: SeenTarget; isStop: boolean }): boolean {
    return next.target !== this.props.target || next.isStop !== this.props.isStop;
  }

  override render() {
    const { target, isStop } = this.props;
    const { id, owner, reason, pinned, movedAtMs, movedFrom } = target;
    const { word, letter, kind } = STATES[reason];
    const hasMoved = movedAtMs !== null && performance.now() - movedAtMs < MOVE_SHOWN_MS;
    const isAside = placeOnMap(target) !== 'owner';
    const colour = owner === null ? 'var(--bad)' : markOf(owner).colour;
    return (
      <li style={{ '--owner-colour': colour }}>
        <a
          class={`cell ${kind}${owner === null ? ' nobody' : ''} ${levelOf(target) ?? ''}`}
          href={hrefOf('targets', id)}
          tabIndex={isStop ? 0 : -1}
          data-target={id}
          title={id}
        >
          {hasMoved && <i key={`flash ${movedAtMs}`} class="cell-flash" />}
          <span class="cell-id">{id}</span>
          <span class="visually-hidden">
            : {wordsFor(target).join(', ')}
            {owner !== null && `, ${nameOf(owner)}`}
          </span>
          <span class="cell-marks" aria-hidden="true">
            {hasMoved && movedFrom !== null && movedFrom !== owner && <From id={movedFrom} />}
            {isAside && owner !== null && <b class="cell-owner">{markOf(owner).letters}</b>}
            {pinned !== null && <PinMark />}
            {isNotPreferred(target) && <NotPreferredMark />}
            {letter !== '' && <b class="cell-state">{isAside ? word : letter}</b>}
          </span>
          <TimeBar target={target} />
        </a>
      </li>
    );
  }
}

/** The former owner, for some seconds. */
function From({ id }: { id: string }) {
  const { colour, letters } = markOf(id);
  return (
    <b class="cell-from" style={{ '--owner-colour': colour }}>
      {letters}
      <Icon name="right" />
    </b>
  );
}

/** How much of the lease is left. An animation of the browser runs it down. */
function TimeBar({ target }: { target: SeenTarget }) {
  const left = timeLeft(target, termsOf(target.owner), performance.now());
  if (left === null) return null;
  return (
    <i
      key={target.expiresAtMs}
      class="cell-time"
      style={{ '--left': left.share, '--left-ms': `${Math.round(left.ms)}ms` }}
    />
  );
}

export function PinMark() {
  return (
    <svg class="mark" viewBox="0 0 10 10" aria-hidden="true">
      <circle cx="5" cy="3" r="2.6" />
      <path d="M5 5v5" stroke="currentColor" stroke-width="1.4" />
    </svg>
  );
}

export function NotPreferredMark() {
  return (
    <svg class="mark" viewBox="0 0 10 10" aria-hidden="true">
      <path d="M5 0.5 9.5 5 5 9.5 0.5 5Z" />
    </svg>
  );
}

function idAt({ target }: Event): string | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>('[data-target]') : null;
  return cell?.dataset.target ?? null;
}

const STEPS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Left and right move by one cell, up and down to the nearest cell of the row above or below. After a lane comes the next one. */
function moveFocus(event: KeyboardEvent): void {
  const step = STEPS[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const cells = [...document.querySelectorAll<HTMLElement>('.cells [data-target]')];
  const at = cells.findIndex((cell) => cell.matches(':focus'));
  const [across, down] = step;
  const next = across !== 0 ? cells[at + across] : nearest(cells, at, down);
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

function nearest(cells: readonly HTMLElement[], at: number, down: number): HTMLElement | undefined {
  const from = cells[at]?.getBoundingClientRect();
  if (from === undefined) return undefined;
  let best: HTMLElement | undefined;
  let bestFar = Number.POSITIVE_INFINITY;
  for (const cell of cells) {
    const box = cell.getBoundingClientRect();
    const below = (box.top - from.top) * down;
    if (below < from.height / 2) continue;
    const far = below * 4 + Math.abs(box.left - from.left);
    if (far < bestFar) [best, bestFar] = [cell, far];
  }
  return best;
}
