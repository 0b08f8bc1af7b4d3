/** What has just moved, in words. */
import { lately, type News } from '../../data/lately.ts';
import { clockTime, counted, exactly } from '../../data/words.ts';
import { Owner } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';

const SHOWN = 3;

export function Lately() {
  const shown = lately.value.slice(0, SHOWN);
  return (
    <section class="lately" aria-label="What has moved lately">
      <ol aria-live="polite" aria-relevant="additions">
        {shown.length === 0 && (
          <li class="quiet">Nothing has moved lately. When something does, it says so here.</li>
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
  handover: 'handed over',
  first: 'for the first time',
};

function Taken({ news }: { news: News & { kind: 'taken' } }) {
  const { by, from, how, count, gapMs } = news;
  return (
    <span>
      <Owner id={by} /> took {counted(count, 'target')}
      {from === by && ' back'}
      {from !== null && from !== by && (
        <>
          {' '}
          from <Owner id={from} />
        </>
      )}{' '}
      ({HOW[how] ?? how}
      {how === 'failover' && `, after a gap of ${exactly(gapMs)}${count > 1 ? ' at most' : ''}`})
    </span>
  );
}
