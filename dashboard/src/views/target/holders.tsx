/** Who had it, from when until when, how that ended, and what lay between. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { explain, type Gap } from '../../data/gaps.ts';
import { now } from '../../data/now.ts';
import { nameOf } from '../../data/palette.ts';
import { serverWallOf } from '../../data/server-time.ts';
import { type Ending, type Present, type Tenure, withPresent } from '../../data/tenures.ts';
import { exactly, moment, spanOf } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { partsOf } from '../leases/held.ts';
import { ExplanationText } from '../timeline/explanation.tsx';
import { WORDS } from '../timeline/instance-words.ts';
import { Past, type Subject } from './past.ts';

/** So many at once; the log may have thousands. */
const MOST_ROWS = 100;

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
    <Panel title="Holders" aside={<Reading past={past} />}>
      {past.trouble.value !== null && (
        <p class="notice bad" role="alert">
          The log could not be read: {past.trouble.value}
        </p>
      )}
      {tenures.length === 0 ? (
        <p class="quiet">
          {past.isReading.value ? 'Looking through the log …' : 'The log has no holder of it.'}
        </p>
      ) : (
        <Table tenures={tenures} gaps={past.gaps(tenures)} onExplain={setChosen} />
      )}
      {chosen !== null && <Why gap={chosen} past={past} />}
    </Panel>
  );
}

function Why({ gap, past }: { gap: Gap; past: Past }) {
  const explanation = explain(gap, past.story.marks(), WORDS);
  return (
    <div class="holders-why" aria-live="polite">
      <h3>{explanation.title}</h3>
      <ExplanationText of={explanation} />
    </div>
  );
}

function Reading({ past }: { past: Past }) {
  if (past.isReading.value) return <>reading the log …</>;
  if (past.isWhole.value) return <>all that the log has</>;
  return (
    <button type="button" class="plain" onClick={() => void past.readOlder()}>
      Look further back
    </button>
  );
}

interface TableProps {
  readonly tenures: readonly Tenure[];
  readonly gaps: readonly Gap[];
  onExplain(gap: Gap): void;
}

function Table({ tenures, gaps, onExplain }: TableProps) {
  const behind = new Map(gaps.map((gap) => [gap.before, gap]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="scroll-x" aria-label="Holders, the latest first" tabIndex={0}>
      <table class="rows holders">
        <thead>
          <tr>
            <th scope="col">Holder</th>
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
                {...{ tenure, gap: behind.get(tenure) ?? null, onExplain }}
              />
            ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps {
  readonly tenure: Tenure;
  readonly gap: Gap | null;
  onExplain(gap: Gap): void;
}

function Row({ tenure, gap, onExplain }: RowProps) {
  const { holder, fence, from, ending } = tenure;
  return (
    <tr>
      <td title={holder}>
        <Owner id={partsOf(holder).instance} />
      </td>
      <td>{from === null ? <span class="quiet">before what was read</span> : moment(from)}</td>
      <td>{from !== null && <HeldFor from={from} until={ending?.at ?? null} />}</td>
      <td>{ending === null ? 'holds it now' : wordsOf(ending)}</td>
      <td>
        {gap !== null && (
          <button type="button" onClick={() => onExplain(gap)}>
            {gapWords(gap)}: why?
          </button>
        )}
      </td>
      <td class="mono quiet">{fence ?? '?'}</td>
    </tr>
  );
}

function HeldFor({ from, until }: { from: number; until: number | null }) {
  return <>{spanOf(Math.max(0, (until ?? serverWallOf(now.value)) - from))}</>;
}

function gapWords({ kind, lengthMs }: Gap): string {
  if (lengthMs === null) return 'nobody yet';
  if (kind === 'handover') return `handed over in ${exactly(lengthMs)}`;
  return `no owner for ${exactly(lengthMs)}`;
}

function wordsOf({ kind, why, successor }: Ending): string {
  switch (kind) {
    case 'released':
      return 'let go';
    case 'transferred':
      return `handed to ${nameOf(successor ?? '?')}`;
    case 'abandoned':
      return `left to run out: ${why ?? '?'}`;
    case 'lost':
      return `lost (${why ?? '?'})`;
    case 'revoked':
      return `revoked${why === null ? '' : `: ${why}`}`;
    case 'ranOut':
      return 'its lease ran out';
    case 'gone':
      return 'its holder is gone';
    default:
      return 'the log does not say';
  }
}
