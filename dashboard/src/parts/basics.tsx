/** The small things that every view is made of. */
import type { ComponentChildren } from 'preact';
import { now } from '../data/now.ts';
import { markOf, nameOf } from '../data/palette.ts';
import { spanOf } from '../data/words.ts';
import { hrefOf } from '../router.ts';

/** An instance: its colour, its letters, its name. */
export function Owner({ id, link = true }: { id: string | null; link?: boolean }) {
  if (id === null)
    return (
      <span class="owner nobody">
        <i aria-hidden="true">–</i>nobody
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

/** How long ago, ticking. `at` is on the page's monotonic clock. */
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

/** One figure. `alarm` where it should not be what it is; `note` says in words why. */
export function Stat({
  name,
  value,
  note,
  alarm = false,
}: {
  name: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  alarm?: boolean;
}) {
  return (
    <dl class={alarm ? 'stat alarm' : 'stat'}>
      <dt>
        {alarm && <span aria-hidden="true">▲ </span>}
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

/** Where there is nothing: what that means, and what to do next. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}
