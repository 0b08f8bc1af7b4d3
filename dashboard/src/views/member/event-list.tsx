/** The events of an instance, in words and in order of time. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { sentenceFor } from '../../data/sentence.ts';
import { wantName } from '../../data/session-lookup.ts';
import { latestFirst } from '../../data/time-order.ts';
import { moment } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { Rows } from '../../parts/rows.tsx';
import { hrefOf } from '../../router.ts';
import type { MemberEvents } from './member-events.ts';

const ROW_HEIGHT = 30;
const HEIGHT = 330;

export function EventList({ id, known }: { id: string; known: MemberEvents }) {
  return (
    <Panel
      title="History"
      aside={<a href={hrefOf('feed', undefined, { member: id })}>Show in feed</a>}
    >
      {known.failure !== null && <p class="notice bad">{known.failure}</p>}
      {known.events.length === 0 ? (
        <p class="quiet">
          {known.isWhole ? 'The log has no events of this instance.' : 'Loading events …'}
        </p>
      ) : (
        <Rows
          items={latestFirst(known.events)}
          rowHeight={ROW_HEIGHT}
          height={HEIGHT}
          label="Events"
          keyOf={({ position }) => position}
          row={(event) => <Line event={event} />}
        />
      )}
    </Panel>
  );
}

function Line({ event: entry }: { event: ApiEvent }) {
  const { at, instance, event } = entry;
  wantName(entry.session);
  const sentence = sentenceFor(entry);
  return (
    <>
      <time class="quiet small">{moment(at)}</time>
      <Owner id={instance} />
      <span class="event-words" title={`${event}: ${sentence}`}>
        {sentence}
      </span>
    </>
  );
}
