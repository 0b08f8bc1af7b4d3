/** The small parts that every view is made of. */
import type { ComponentChildren } from 'preact';
import { now } from '../data/now.ts';
import { markOf, nameOf } from '../data/palette.ts';
import { spanOf } from '../data/words.ts';
import { hrefOf } from '../router.ts';
import { Icon } from './icon.tsx';

/** An instance: its colour, its letters, its name. Its id is the tooltip. */
export function Owner({
  id,
  link = true,
  none = 'no owner',
}: {
  id: string | null;
  link?: boolean;
  /** What to say if there is none. */
  none?: string;
}) {
  if (id === null)
    return (
      <span class="owner nobody">
        <i aria-hidden="true">–</i>
        {none}
      </span>
    );
  const { colour, letters } = markOf(id);
  return (
    <span class="owner" title={id}>
      <i aria-hidden="true" style={{ '--owner-colour': colour }}>
        {letters}
      </i>
      {link ? <a href={hrefOf('members', id)}>{nameOf(id)}</a> : nameOf(id)}
    </span>
  );
}

/** How long ago, ticking. `at` is on the browser's monotonic clock. */
export function Ago({ at }: { at: number }) {
  return <>{spanOf(Math.max(0, now.value - at))} ago</>;
}

/** How soon, ticking. */
export function Left({ at }: { at: number }) {
  return <>{Number.isFinite(at) ? spanOf(Math.max(0, at - now.value)) : 'never'}</>;
}

export function Panel({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside !== undefined && <div class="push quiet small">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

export interface StatProps {
  readonly name: string;
  readonly value: ComponentChildren;
  /** Says in words why it is as it is. */
  readonly note?: ComponentChildren;
  /** `bad`: an operator has to act. `warn`: it may become bad. `quiet`: it is zero, or as usual, and steps back. */
  readonly tone?: 'bad' | 'warn' | 'quiet' | undefined;
}

/** One figure. */
export function Stat({ name, value, note, tone }: StatProps) {
  return (
    <dl class={tone === undefined ? 'stat' : `stat ${tone}`}>
      <dt>
        {(tone === 'bad' || tone === 'warn') && <Icon name="warning" />}
        {name}
      </dt>
      <dd>
        {value} {note !== undefined && <small class="quiet">{note}</small>}
      </dd>
    </dl>
  );
}

/** A share of something, said in words too. */
export function Meter({ share, label, colour }: { share: number; label: string; colour?: string }) {
  const percent = Math.round(Math.min(1, Math.max(0, share)) * 100);
  return (
    <div class="meter" role="img" aria-label={`${label}: ${percent} %`}>
      <i
        style={{ width: `${percent}%`, ...(colour !== undefined && { '--meter-colour': colour }) }}
      />
    </div>
  );
}

/** An empty view: what that means, and what to do next. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
