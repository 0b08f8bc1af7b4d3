/** What is around every view: where one can go, whom one talks to, and how old what one sees is. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { about, signOut } from './data/access.ts';
import { feedLostAtMs } from './data/events.ts';
import { roundTripMs, seenAtMs, trouble } from './data/fleet.ts';
import { now } from './data/now.ts';
import { theme, turnTheme } from './data/theme.ts';
import { spanOf } from './data/words.ts';
import { isHelpShown } from './keyboard.ts';
import { hrefOf, place } from './router.ts';
import { VIEWS } from './views.ts';

/** Older than this, and what is seen may not be so any more. */
const STALE_MS = 5_000;
/** A connection that is cut and made again is not worth a word. */
const FEED_LOST_MS = 3_000;

export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="visually-hidden" href="#main">
        Skip to the view
      </a>
      <Top />
      <nav class="nav" aria-label="Views">
        <ul>
          {Object.entries(VIEWS).map(([view, { title, key, isHidden }]) =>
            isHidden ? null : (
              <li key={view}>
                <a
                  href={hrefOf(view)}
                  aria-current={place.value.view === view ? 'page' : undefined}
                >
                  {title}
                  <kbd>g {key}</kbd>
                </a>
              </li>
            ),
          )}
        </ul>
      </nav>
      <main class="main" id="main">
        {trouble.value !== null && (
          <p class="notice bad" role="alert">
            {trouble.value} What you see is from{' '}
            {seenAtMs.value === null ? 'nobody yet' : `${spanOf(now.value - seenAtMs.value)} ago`}.
            It is tried again.
          </p>
        )}
        {lostFeedMs() !== null && (
          <p class="notice bad" role="alert">
            No events for {spanOf(lostFeedMs() ?? 0)}: the event feed is interrupted. Leases and
            instances are shown as they are; what happened since is missing until the feed is back.
            It is tried again.
          </p>
        )}
        {children}
      </main>
      <Help />
    </div>
  );
}

function Top() {
  const known = about.value;
  return (
    <header class="top">
      <a class="brand" href="#/">
        <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" fill="var(--accent)" />
          <path
            d="M10 7v18M22 7v18M10 16h12"
            stroke="var(--accent-ink)"
            stroke-width="4"
            stroke-linecap="round"
          />
        </svg>
        Holdfast
      </a>
      <span class="store" title={known?.store}>
        {known?.store}
      </span>
      <span class="push" />
      <DataAge />
      {known !== null && (
        <span
          class={known.scope === 'v3:read' ? 'badge warn' : 'badge'}
          title={`Token ${known.tokenId}, scope ${known.scope}`}
        >
          {known.scope === 'v3:read' ? 'read only' : known.scope.slice(3)}
        </span>
      )}
      <button
        type="button"
        class="plain"
        onClick={turnTheme}
        aria-label={`Turn ${theme.value === 'dark' ? 'light' : 'dark'}`}
      >
        <span aria-hidden="true">{theme.value === 'dark' ? '☀' : '☾'}</span>
      </button>
      <button
        type="button"
        class="plain"
        onClick={() => {
          isHelpShown.value = true;
        }}
        aria-label="Keys and help"
      >
        ?
      </button>
      <button type="button" class="plain" onClick={signOut}>
        Sign out
      </button>
    </header>
  );
}

/** How old what is shown is: the word changes, not only the colour. */
function DataAge() {
  const seenAt = seenAtMs.value;
  if (seenAt === null) return <span class="badge">no data yet</span>;
  const ageMs = Math.max(0, now.value - seenAt);
  const isStale = ageMs > STALE_MS;
  const isDeaf = lostFeedMs() !== null;
  return (
    <span
      class={isStale || isDeaf ? 'badge bad' : 'badge good'}
      title={`The store answers in ${roundTripMs.value.toFixed(1)} ms`}
    >
      {wordsOf(ageMs, isDeaf)}
    </span>
  );
}

function wordsOf(ageMs: number, isDeaf: boolean): string {
  if (ageMs > STALE_MS) return `▲ ${spanOf(ageMs)} old`;
  return isDeaf ? '▲ no events' : `● live, ${spanOf(Math.round(ageMs / 100) * 100)} old`;
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
  return (
    <dialog
      ref={dialog}
      aria-label="Keys"
      onClose={() => {
        isHelpShown.value = false;
      }}
    >
      <h2>Keys</h2>
      <dl class="facts">
        {Object.entries(VIEWS).map(([view, { title, key, isHidden }]) =>
          isHidden ? null : (
            <>
              <dt key={view}>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{title}</dd>
            </>
          ),
        )}
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search or filter</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>This</dd>
      </dl>
      <p class="quiet small">
        Version {about.value?.version}, instance <code>{about.value?.instance}</code>.{' '}
        <a href="docs">The API</a>
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
