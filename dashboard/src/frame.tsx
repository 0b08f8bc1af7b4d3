/** The frame around every view: navigation, which server this is, and how old the data are. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { about, signOut } from './data/access.ts';
import { feedLostAtMs } from './data/events.ts';
import { roundTripMs, seenAtMs, trouble } from './data/fleet.ts';
import { now } from './data/now.ts';
import { nameOf } from './data/palette.ts';
import { theme, turnTheme } from './data/theme.ts';
import { spanOf } from './data/words.ts';
import { isHelpShown } from './keyboard.ts';
import { Icon, type IconName } from './parts/icon.tsx';
import { hrefOf, place } from './router.ts';
import { VIEWS } from './views.ts';

/** Data older than this may no longer be true. */
const STALE_MS = 5_000;
/** A connection that is cut and made again within this time is not worth a word. */
const FEED_LOST_MS = 3_000;

export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="visually-hidden" href="#main">
        Skip to content
      </a>
      <Top />
      <Navigation />
      <main class="main" id="main">
        {trouble.value !== null && (
          <p class="notice bad" role="alert">
            {trouble.value}{' '}
            {seenAtMs.value === null
              ? 'The dashboard has no data yet.'
              : `The data below are ${spanOf(now.value - seenAtMs.value)} old.`}{' '}
            The dashboard keeps trying.
          </p>
        )}
        {lostFeedMs() !== null && (
          <p class="notice bad" role="alert">
            The event feed is interrupted: no events for {spanOf(lostFeedMs() ?? 0)}. Leases and
            instances are up to date; newer events are missing until the feed is back. The dashboard
            keeps trying.
          </p>
        )}
        {children}
      </main>
      <Help />
    </div>
  );
}

/** On a phone it is a row that scrolls: the current view is brought into sight. */
function Navigation() {
  const list = useRef<HTMLUListElement>(null);
  const { view } = place.value;
  useEffect(() => {
    const row = list.current?.parentElement;
    const current = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (!row || !current) return;
    row.scrollTo({ left: current.offsetLeft - (row.clientWidth - current.offsetWidth) / 2 });
  }, [view]);
  return (
    <nav class="nav" aria-label="Views">
      <ul ref={list}>
        {Object.entries(VIEWS).map(([name, { title, key }]) => (
          <li key={name}>
            <a href={hrefOf(name)} aria-current={view === name ? 'page' : undefined}>
              {title}
              <kbd>g {key}</kbd>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Top() {
  const known = about.value;
  return (
    <header class="top">
      <a class="brand" href="#/" aria-label="Holdfast">
        <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" fill="var(--accent)" />
          <path
            d="M10 7v18M22 7v18M10 16h12"
            stroke="var(--accent-ink)"
            stroke-width="4"
            stroke-linecap="round"
          />
        </svg>
        <span>Holdfast</span>
      </a>
      <span class="store" title={known?.store}>
        {known?.store}
      </span>
      <span class="push" />
      <DataAge />
      {known !== null && (
        <span
          class={known.scope === 'v3:read' ? 'badge warn' : 'badge scope'}
          title={`Token ${known.tokenId}, scope ${known.scope}`}
        >
          {known.scope === 'v3:read' ? 'read only' : known.scope.slice(3)}
        </span>
      )}
      <button
        type="button"
        class="plain"
        onClick={turnTheme}
        aria-label={`Use the ${theme.value === 'dark' ? 'light' : 'dark'} theme`}
      >
        <Icon name={theme.value === 'dark' ? 'sun' : 'moon'} />
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          isHelpShown.value = true;
        }}
        aria-label="Keyboard shortcuts"
      >
        ?
      </button>
      <button type="button" class="plain" onClick={signOut}>
        Sign out
      </button>
    </header>
  );
}

type Age = 'none' | 'live' | 'old' | 'no-events';

const AGE_ICONS: Readonly<Record<Age, IconName>> = {
  none: 'waiting',
  live: 'dot',
  old: 'warning',
  'no-events': 'warning',
};

/** How old the data are: the word and the icon change, not only the colour. */
function DataAge() {
  const seenAt = seenAtMs.value;
  const ageMs = seenAt === null ? 0 : Math.max(0, now.value - seenAt);
  const age = ageOf(seenAt, ageMs);
  const words = { none: 'no data yet', live: 'live', old: `${spanOf(ageMs)} old` };
  const tone = { none: '', live: 'good', old: 'bad', 'no-events': 'bad' }[age];
  return (
    <span
      class={`badge ${tone}`}
      data-age={age}
      title={`The store answers in ${roundTripMs.value.toFixed(1)} ms. The data are ${spanOf(Math.round(ageMs / 100) * 100)} old.`}
    >
      <Icon name={AGE_ICONS[age]} />
      {age === 'no-events' ? 'no events' : words[age]}
    </span>
  );
}

function ageOf(seenAt: number | null, ageMs: number): Age {
  if (seenAt === null) return 'none';
  if (ageMs > STALE_MS) return 'old';
  return lostFeedMs() === null ? 'live' : 'no-events';
}

/** For how long no events have come; null while they do. */
function lostFeedMs(): number | null {
  const lostMs = feedLostAtMs.value === null ? 0 : now.value - feedLostAtMs.value;
  return lostMs > FEED_LOST_MS ? lostMs : null;
}

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isShown = isHelpShown.value;
  useEffect(() => {
    if (isShown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isShown]);
  const known = about.value;
  return (
    <dialog
      ref={dialog}
      aria-label="Keyboard shortcuts"
      onClose={() => {
        isHelpShown.value = false;
      }}
    >
      <h2>Keyboard shortcuts</h2>
      <dl class="facts">
        {Object.entries(VIEWS).map(([view, { title, key }]) => (
          <>
            <dt key={view}>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </>
        ))}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search or filter</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Show these shortcuts</dd>
      </dl>
      <p class="quiet small">
        Version {known?.version}, served by{' '}
        <span title={known?.instance}>{nameOf(known?.instance ?? '')}</span>.{' '}
        <a href="docs">HTTP API reference</a>
      </p>
      <div class="buttons end">
        <button
          type="button"
          onClick={() => {
            isHelpShown.value = false;
          }}
        >
          Close
        </button>
      </div>
    </dialog>
  );
}
