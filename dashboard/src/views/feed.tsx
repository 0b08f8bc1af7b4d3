/** The log, live, in order of time, the latest first: one line per event, and its JSON on request. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ApiEvent } from '../../../src/client/messages.ts';
import '../style/feed.css';
import { targetOf } from '../../../src/telemetry/about.ts';
import { trouble } from '../data/fleet.ts';
import { sentenceFor } from '../data/sentence.ts';
import { wantName } from '../data/session-lookup.ts';
import { clockTime, counted, moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Owner } from '../parts/basics.tsx';
import { Icon, type IconName } from '../parts/icon.tsx';
import { Rows } from '../parts/rows.tsx';
import { hrefOf, place, setQuery } from '../router.ts';
import { Listing } from './feed/listing.ts';
import type { Item } from './feed/strip.ts';
import { commandOf, EVENT_NAMES, isKnownEvent, levelOf, type Wish, wishOf } from './feed/wish.ts';

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
        <span class="quiet">{counted(items.length, 'event')} loaded</span>
        <span class="push" />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          <Icon name={isPaused ? 'play' : 'pause'} />
          {isPaused ? 'Continue' : 'Pause'}
        </button>
      </div>
      <Filters />
      {!isKnownEvent(wish.event) && (
        <p class="notice" role="alert">
          No event is called '{wish.event}'. Choose one from the list of the field.
        </p>
      )}
      {listing.trouble.value !== null && trouble.value === null && (
        <p class="notice bad" role="alert">
          The server could not read the log: {listing.trouble.value}
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
        <summary class="quiet small">Show the command</summary>
        <AsCli command={commandOf(wish)} />
      </details>
    </>
  );
}

/** The log is searched when the user has stopped typing for this long. */
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
          <Icon name="up" /> {aside.toLocaleString('en')} new
        </button>
      )}
      {items.length === 0 ? (
        <Nothing listing={listing} />
      ) : (
        <Rows
          items={items}
          rowHeight={rowPx}
          height={height}
          label="Events, latest first"
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
  if (isReading.value) return 'Loading older events …';
  return strip.isWhole ? 'The log has no older events.' : 'Scroll down for older events.';
}

function Nothing({ listing }: { listing: Listing }) {
  if (listing.isReading.value) return <p class="quiet feed-end">Loading events …</p>;
  if (listing.strip.isWhole && place.value.query.size === 0)
    return (
      <Empty title="The log has no events yet.">
        Instances log what happens to them. Start one:
        <AsCli command="holdfast up" />
      </Empty>
    );
  return (
    <Empty title="No event matches these filters.">
      {listing.strip.isWhole ? (
        'The log keeps one day, and at most 100,000 events.'
      ) : (
        <button type="button" onClick={() => void listing.readOlder()}>
          Search older events
        </button>
      )}
      <button
        type="button"
        onClick={() => setQuery({ event: '', member: '', target: '', text: '' })}
      >
        Clear filters
      </button>
    </Empty>
  );
}

/** The height of the list and of its rows. */
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

const LEVEL_ICONS: Readonly<Record<ReturnType<typeof levelOf>, IconName>> = {
  debug: 'ring',
  info: 'dot',
  warn: 'warning',
  error: 'cross',
};

interface RowProps {
  readonly item: Item;
  readonly chosen: ApiEvent | null;
  onChoose(event: ApiEvent): void;
}

function Row({ item, chosen, onChoose }: RowProps) {
  if (item.kind === 'gap')
    return (
      <span class="feed-gap warn">
        <Icon name="warning" /> Events are missing here: the log dropped them before the server
        could send them.
      </span>
    );
  const { event } = item;
  wantName(event.session);
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
        <Icon name={LEVEL_ICONS[level]} />
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
        placeholder: 'lease.lost',
      })}
      {field('member', 'Instance', { placeholder: 'start of its name' })}
      {field('target', 'Target or session', { placeholder: 'its full id' })}
      {field('text', 'Text', { placeholder: 'any text  /', 'data-search': true })}
      <datalist id="event-names">
        {EVENT_NAMES.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </div>
  );
}

const SHOWN_MS = 1_500;
/** The timeline shows this much around the event. */
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
    <aside class="panel feed-detail" aria-label="Event">
      <header>
        <h2>{event.event}</h2>
        <button type="button" class="plain push" onClick={onClose} aria-label="Close the event">
          <Icon name="cross" />
        </button>
      </header>
      <p>
        <Owner id={event.instance} /> {sentenceFor(event)}
      </p>
      <pre class="mono small">{json}</pre>
      <p class="quiet small">
        {moment(event.at)} by the clock of the instance. Position {position} of the log.
      </p>
      <div class="buttons">
        <button type="button" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy JSON'}
        </button>
        <a
          class="button"
          href={hrefOf('timeline', undefined, {
            ...around,
            ...(target !== undefined && { q: target }),
          })}
        >
          Show in timeline
        </a>
        {target !== undefined && (
          <button type="button" onClick={() => setQuery({ target })}>
            Only this {typeof event.session === 'string' ? 'session' : 'target'}
          </button>
        )}
        <button type="button" onClick={() => setQuery({ event: event.event })}>
          Only this event type
        </button>
      </div>
    </aside>
  );
}
