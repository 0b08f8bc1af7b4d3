/** Who had it, from when until when, how that ended, and the gaps in between. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { explain, type Gap, lossText } from '../../data/gaps.ts';
import { now } from '../../data/now.ts';
import { nameOf } from '../../data/palette.ts';
import { serverWallOf } from '../../data/server-time.ts';
import { type Ending, type Present, type Tenure, withPresent } from '../../data/tenures.ts';
import { exactly, moment, spanOf } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { ScrollX } from '../../parts/scroll-x.tsx';
import { partsOf } from '../leases/held.ts';
import { ExplanationText } from '../timeline/explanation.tsx';
import { WORDS } from '../timeline/instance-words.ts';
import { Past, type Subject } from './past.ts';

/** The log may have thousands. */
const MOST_ROWS = 100;
const COLUMNS = 6;

export function usePast({ id, isTarget }: Subject): Past {
  const past = useMemo(() => new Past({ id, isTarget }), [id, isTarget]);
  useEffect(() => {
    past.start();
    return () => past.stop();
  }, [past]);
  return past;
}

export function Holders({ past, present }: { past: Past; present: Present | null }) {
  const [chosen, setChosen] = useState<Gap | null>(null);
  past.version.value;
  const known = past.tenures();
  const tenures = present === null ? known : withPresent(known, present, serverWallOf(now.peek()));
  return (
    <Panel title="History" aside={<Reading past={past} />}>
      {past.trouble.value !== null && (
        <p class="notice bad" role="alert">
          The server could not read the log: {past.trouble.value}
        </p>
      )}
      {tenures.length === 0 ? (
        <p class="quiet">
          {past.isReading.value ? 'Loading the log …' : 'The log has no entries of it.'}
        </p>
      ) : (
        <Table tenures={tenures} past={past} chosen={chosen} onExplain={setChosen} />
      )}
    </Panel>
  );
}

/** The explanation opens below its row, and comes into view. */
function Why({ gap, past }: { gap: Gap; past: Past }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), []);
  const explanation = explain(gap, past.story.marks(), WORDS);
  return (
    <div class="holders-why" aria-live="polite" ref={box}>
      <h3>{explanation.title}</h3>
      <ExplanationText of={explanation} />
    </div>
  );
}

function Reading({ past }: { past: Past }) {
  if (past.isReading.value) return <>loading the log …</>;
  if (past.isWhole.value) return <>all entries of the log</>;
  return (
    <button type="button" class="plain" onClick={() => void past.readOlder()}>
      Load older entries
    </button>
  );
}

interface TableProps {
  readonly tenures: readonly Tenure[];
  readonly past: Past;
  readonly chosen: Gap | null;
  onExplain(gap: Gap | null): void;
}

function Table({ tenures, past, chosen, onExplain }: TableProps) {
  const behind = new Map(past.gaps(tenures).map((gap) => [gap.before, gap]));
  return (
    <ScrollX label="History, latest first">
      <table class="rows holders">
        <thead>
          <tr>
            <th scope="col">{past.isTarget ? 'Owner' : 'Holder'}</th>
            <th scope="col">From</th>
            <th scope="col">Held for</th>
            <th scope="col">How it ended</th>
            <th scope="col">Then</th>
            <th scope="col">Fence</th>
          </tr>
        </thead>
        <tbody>
          {[...tenures]
            .reverse()
            .slice(0, MOST_ROWS)
            .map((tenure) => (
              <Row
                key={tenure.fence ?? `${tenure.holder} ${tenure.from}`}
                {...{ tenure, past, gap: behind.get(tenure) ?? null, chosen, onExplain }}
              />
            ))}
        </tbody>
      </table>
    </ScrollX>
  );
}

interface RowProps {
  readonly tenure: Tenure;
  readonly past: Past;
  readonly gap: Gap | null;
  readonly chosen: Gap | null;
  onExplain(gap: Gap | null): void;
}

function Row({ tenure, past, gap, chosen, onExplain }: RowProps) {
  const { holder, fence, from, ending } = tenure;
  const isOpen = gap !== null && chosen !== null && isSame(gap, chosen);
  return (
    <>
      <tr>
        <td title={holder}>
          <Owner id={partsOf(holder).instance} />
        </td>
        <td>{from === null ? <span class="quiet">before the log begins</span> : moment(from)}</td>
        <td>{from !== null && <HeldFor from={from} until={ending?.at ?? null} />}</td>
        <td>{ending === null ? 'has it now' : wordsOf(ending)}</td>
        <td>
          {gap !== null && (
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => onExplain(isOpen ? null : gap)}
            >
              {gapWords(gap, past.isTarget)}: why?
            </button>
          )}
        </td>
        <td class="mono quiet">{fence ?? '?'}</td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={COLUMNS}>
            <Why gap={gap} past={past} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Gaps are computed again with each event: the same one has the same ends. */
function isSame(a: Gap, b: Gap): boolean {
  return a.before?.fence === b.before?.fence && a.before?.holder === b.before?.holder;
}

function HeldFor({ from, until }: { from: number; until: number | null }) {
  return <>{spanOf(Math.max(0, (until ?? serverWallOf(now.value)) - from))}</>;
}

function gapWords({ kind, lengthMs }: Gap, isTarget: boolean): string {
  const who = isTarget ? 'owner' : 'holder';
  if (lengthMs === null) return `no ${who} yet`;
  if (kind === 'handover') return `handed over in ${exactly(lengthMs)}`;
  return `no ${who} for ${exactly(lengthMs)}`;
}

function wordsOf({ kind, why, successor }: Ending): string {
  switch (kind) {
    case 'released':
      return 'released it';
    case 'transferred':
      return `handed it to ${nameOf(successor ?? '?')}`;
    case 'abandoned':
      return `let it expire: ${why ?? '?'}`;
    case 'lost':
      return `lost it: ${lossText(why)}`;
    case 'revoked':
      return `revoked${why === null ? '' : `: ${why}`}`;
    case 'ranOut':
      return 'its lease expired';
    case 'gone':
      return 'its process is gone';
    default:
      return 'the log does not say';
  }
}
