/** Recent activity, in words and in order of time. */
import { lately, type News } from '../../data/lately.ts';
import { nameOf } from '../../data/palette.ts';
import { clockTime, counted, exactly } from '../../data/words.ts';
import { Owner } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';

const SHOWN = 3;

export function Lately() {
  const shown = lately.value.slice(0, SHOWN);
  return (
    <section class="lately" aria-label="Recent activity">
      <ol aria-live="polite" aria-relevant="additions">
        {shown.length === 0 && (
          <li class="quiet">No recent activity. Targets that change owners show up here.</li>
        )}
        {shown.map((news) => (
          <li key={`${news.key} ${news.at}`}>
            <time class="quiet">{clockTime(news.at).slice(0, 8)}</time>
            {news.kind === 'taken' ? <Taken news={news} /> : <MemberNews news={news} />}
          </li>
        ))}
      </ol>
      <a class="small" href={hrefOf('feed')}>
        All events
      </a>
    </section>
  );
}

function MemberNews({ news }: { news: News & { kind: 'member' } }) {
  return (
    <span>
      <Owner id={news.member} /> {news.what}
    </span>
  );
}

const HOW: Readonly<Record<string, string>> = {
  failover: 'failover',
  handover: 'handover',
  first: 'first owner',
};

function Taken({ news }: { news: News & { kind: 'taken' } }) {
  const { by, from, how, count, gapMs } = news;
  const isRestart = from !== null && from !== by && nameOf(from) === nameOf(by);
  return (
    <span>
      <Owner id={by} /> took {counted(count, 'target')}
      {from === by && ' back'}
      {isRestart && ' from its earlier instance'}
      {from !== null && from !== by && !isRestart && (
        <>
          {' '}
          from <Owner id={from} />
        </>
      )}{' '}
      ({HOW[how] ?? how}
      {how === 'failover' && `, gap of ${count > 1 ? 'at most ' : ''}${exactly(gapMs)}`})
    </span>
  );
}
