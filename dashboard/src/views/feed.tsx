/** What happens, as it happens, the latest first: one line each, in words, and as it was written down for those who want that. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ApiEvent } from '../../../src/client/messages.ts';
import '../style/feed.css';
import { targetOf } from '../../../src/telemetry/about.ts';
import { trouble } from '../data/fleet.ts';
import { clockTime, counted, moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner } from '../parts/basics.tsx';
import { Rows } from '../parts/rows.tsx';
import { hrefOf, place, setQuery } from '../router.ts';
import { Listing } from './feed/listing.ts';
import type { Item } from './feed/strip.ts';
import {
  commandOf,
  EVENT_NAMES,
  isKnownEvent,
  levelOf,
  sentenceFor,
  type Wish,
  wishOf,
} from './feed/wish.ts';

const ROW_PX = 34;
/** On a phone an event has two lines. */
const TALL_ROW_PX = 58;
const NARROW = '(max-width: 760px)';
/** What is above and below the list. */
const AROUND_PX = 300;
const LEAST_PX = 320;
/** This close to the end of the list older ones are fetched. */
const NEAR_END_PX = 600;

export function FeedView() {
  const wish = wishOf(place.value.query);
  const asked = useSettled(JSON.stringify(wish));
  const listing = useMemo(() => new Listing(JSON.parse(asked) as Wish), [asked]);
  const [isPaused, setPaused] = useState(false);
  const [isScrolled, setScrolled] = useState(false);
  const [chosen, setChosen] = useState<ApiEvent | null>(null);
  useEffect(() => {
    listing.start();
    return () => listing.stop();
  }, [listing]);
  useEffect(() => listing.hold(isPaused || isScrolled), [listing, isPaused, isScrolled]);
  listing.version.value;
  const { items, aside } = listing.strip;
  return (
    <>
      <div class="view-head">
        <h1>Feed</h1>
        <span class="quiet">{counted(items.length, 'event')} here</span>
        <span class="push" />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? '▶ Go on' : '⏸ Pause'}
        </button>
      </div>
      <Filters />
      {!isKnownEvent(wish.event) && (
        <p class="notice" role="alert">
          There is no event '{wish.event}'. The list of the field has all of them.
        </p>
      )}
      {listing.trouble.value !== null && trouble.value === null && (
        <p class="notice bad" role="alert">
          What happened before could not be read: {listing.trouble.value}
        </p>
      )}
      <div class={chosen === null ? 'feed' : 'feed split'}>
        <List
          key={asked}
          listing={listing}
          items={items}
          aside={aside}
          chosen={chosen}
          onChoose={setChosen}
          onScrolled={setScrolled}
          onResume={() => setPaused(false)}
        />
        {chosen !== null && <Detail event={chosen} onClose={() => setChosen(null)} />}
      </div>
      <details class="feed-cli">
        <summary class="quiet small">As a command</summary>
        <AsCli command={commandOf(wish)} />
      </details>
    </>
  );
}

/** Who types is not done: the log is searched for what stands there after a pause. */
const TYPING_MS = 250;

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    if (value === settled) return;
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value, settled]);
  return settled;
}

interface ListProps {
  readonly listing: Listing;
  readonly items: readonly Item[];
  readonly aside: number;
  readonly chosen: ApiEvent | null;
  onChoose(event: ApiEvent): void;
  onScrolled(isScrolled: boolean): void;
  onResume(): void;
}

function List({ listing, items, aside, chosen, onChoose, onScrolled, onResume }: ListProps) {
  const box = useRef<HTMLDivElement>(null);
  const { height, rowPx } = useRoom();
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // It does not bubble, but it can be caught on its way down.
    const onScroll = ({ target }: Event) => {
      if (!(target instanceof HTMLElement)) return;
      const { scrollTop, scrollHeight, clientHeight } = target;
      onScrolled(scrollTop > 4);
      if (scrollHeight - scrollTop - clientHeight < NEAR_END_PX) void listing.readOlder();
    };
    element.addEventListener('scroll', onScroll, { capture: true, passive: true });
    return () => element.removeEventListener('scroll', onScroll, { capture: true });
  }, [listing]);
  const toTop = () => {
    onResume();
    box.current?.querySelector('.rows-box')?.scrollTo({ top: 0 });
  };
  return (
    <div class="panel feed-list" ref={box}>
      {aside > 0 && (
        <button type="button" class="main-action feed-new" onClick={toTop}>
          ↑ {aside.toLocaleString('en')} new
        </button>
      )}
      {items.length === 0 ? (
        <Nothing listing={listing} />
      ) : (
        <Rows
          items={items}
          rowHeight={rowPx}
          height={height}
          label="Events, the latest first"
          keyOf={(item) => (item.kind === 'event' ? item.event.position : `gap ${item.behind}`)}
          row={(item) => <Row item={item} chosen={chosen} onChoose={onChoose} />}
        />
      )}
      <p class="quiet small feed-end" role="status">
        {ending(listing)}
      </p>
    </div>
  );
}

function ending({ strip, isReading }: Listing): string {
  if (isReading.value) return 'Older events are being read …';
  return strip.isWhole ? 'That is all the log has.' : 'Scroll down for older events.';
}

function Nothing({ listing }: { listing: Listing }) {
  if (listing.isReading.value) return <p class="quiet">Looking …</p>;
  if (listing.strip.isWhole && place.value.query.size === 0)
    return (
      <Empty title="Nothing has happened yet.">
        Instances write down what happens to them. Start one:
        <AsCli command="holdfast up" />
      </Empty>
    );
  return (
    <Empty title="Nothing like that has happened.">
      {listing.strip.isWhole ? (
        'The log has the last day, or the last 100,000 events.'
      ) : (
        <button type="button" onClick={() => void listing.readOlder()}>
          Look further back
        </button>
      )}
      <button
        type="button"
        onClick={() => setQuery({ event: '', member: '', target: '', text: '' })}
      >
        Show everything
      </button>
    </Empty>
  );
}

/** How much of the screen the list may have, and how high its rows are. */
function useRoom(): { height: number; rowPx: number } {
  const [room, setRoom] = useState(roomNow);
  useEffect(() => {
    const onResize = () => setRoom(roomNow());
    addEventListener('resize', onResize);
    return () => removeEventListener('resize', onResize);
  }, []);
  return room;
}

function roomNow(): { height: number; rowPx: number } {
  return {
    height: Math.max(LEAST_PX, innerHeight - AROUND_PX),
    rowPx: matchMedia(NARROW).matches ? TALL_ROW_PX : ROW_PX,
  };
}

const LEVEL_SIGNS = { debug: '·', info: '●', warn: '▲', error: '✕' } as const;

interface RowProps {
  readonly item: Item;
  readonly chosen: ApiEvent | null;
  onChoose(event: ApiEvent): void;
}

function Row({ item, chosen, onChoose }: RowProps) {
  if (item.kind === 'gap')
    return (
      <span class="feed-gap warn">
        ▲ Something is missing here: the log had dropped it before it could be sent.
      </span>
    );
  const { event } = item;
  const level = levelOf(event);
  const words = sentenceFor(event);
  return (
    <div class={`feed-row ${level}`} data-event={event.event}>
      <time
        class="mono quiet small"
        dateTime={new Date(event.at).toISOString()}
        title={moment(event.at)}
      >
        {clockTime(event.at)}
      </time>
      <span class={`feed-level ${level}`} title={level}>
        <span aria-hidden="true">{LEVEL_SIGNS[level]}</span>
        <span class="visually-hidden">{level}</span>
      </span>
      <Owner id={event.instance} />
      <button
        type="button"
        class="plain feed-words"
        title={words}
        aria-pressed={chosen?.position === event.position}
        onClick={() => onChoose(event)}
      >
        {words}
      </button>
      <span class="mono quiet small feed-name">{event.event}</span>
    </div>
  );
}

function Filters() {
  const wish = wishOf(place.value.query);
  const field = (name: keyof typeof wish, label: string, extra: object = {}) => (
    <label class="field">
      <span class="quiet small">{label}</span>
      <input
        type="search"
        value={wish[name]}
        onInput={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
        {...extra}
      />
    </label>
  );
  return (
    <div class="feed-filters">
      {field('event', 'Event or group', {
        list: 'event-names',
        placeholder: 'lease.lost, member …',
      })}
      {field('member', 'Member', { placeholder: 'how its name begins' })}
      {field('target', 'Target or session', { placeholder: 'its whole id' })}
      {field('text', 'Text', { placeholder: 'anything it says  /', 'data-search': true })}
      <datalist id="event-names">
        {EVENT_NAMES.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </div>
  );
}

const SHOWN_MS = 1_500;
/** Around what happened, in the timeline. */
const AROUND_MS = 60_000;

function Detail({ event, onClose }: { event: ApiEvent; onClose(): void }) {
  const [isCopied, setCopied] = useState(false);
  const { position, ...facts } = event;
  const json = JSON.stringify(facts, null, 2);
  const target = targetOf(event);
  const copy = async () => {
    await navigator.clipboard?.writeText(json);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  const around = { for: '1m', until: String(event.at + AROUND_MS / 2) };
  return (
    <aside class="panel feed-detail" aria-label="The event">
      <header>
        <h2>{event.event}</h2>
        <button type="button" class="plain push" onClick={onClose} aria-label="Close the event">
          ×
        </button>
      </header>
      <p>
        <Owner id={event.instance} /> {sentenceFor(event)}
      </p>
      <pre class="mono small">{json}</pre>
      <p class="quiet small">
        Position {position}, {moment(event.at)} by the clock of its instance.
      </p>
      <div class="buttons">
        <button type="button" onClick={copy}>
          {isCopied ? 'copied' : 'Copy the JSON'}
        </button>
        <a
          class="button"
          href={hrefOf('timeline', undefined, {
            ...around,
            ...(target !== undefined && { q: target }),
          })}
        >
          In the timeline
        </a>
        {target !== undefined && (
          <button type="button" onClick={() => setQuery({ target })}>
            Only this target
          </button>
        )}
        <button type="button" onClick={() => setQuery({ event: event.event })}>
          Only these events
        </button>
      </div>
    </aside>
  );
}
