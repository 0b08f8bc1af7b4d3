/** Events around a member, in words. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { sentenceOf } from '../../../../src/telemetry/sentences.ts';
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
      title="What has happened"
      aside={<a href={hrefOf('feed', undefined, { member: id })}>All in the feed</a>}
    >
      {known.failure !== null && <p class="notice bad">{known.failure}</p>}
      {known.events.length === 0 ? (
        <p class="quiet">
          {known.isWhole
            ? 'The log has nothing of it: it may be too long ago.'
            : 'Reading the log …'}
        </p>
      ) : (
        <Rows
          items={known.events}
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
  const { position: _position, at, instance, event, ...facts } = entry;
  const sentence = sentenceOf(event, facts, instance);
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
