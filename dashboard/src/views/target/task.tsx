/** The task of a target that is run, not polled: how it is doing, its restarts, and its last events. */
import type { TargetDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { useArrivals } from '../../data/arrivals.ts';
import { useAsked } from '../../data/asked.ts';
import { sentenceFor } from '../../data/sentence.ts';
import { latestFirst } from '../../data/time-order.ts';
import { counted, moment, spanOf } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { Icon, type IconName } from '../../parts/icon.tsx';

type Result = NonNullable<TargetDetail['lastResult']>;
export type TaskState = NonNullable<Result['state']>;

const STATES: Readonly<
  Record<TaskState, { tone: 'good' | 'warn' | 'bad'; icon: IconName; means: string }>
> = {
  running: { tone: 'good', icon: 'dot', means: 'Its owner runs it.' },
  waiting: {
    tone: 'warn',
    icon: 'waiting',
    means: 'It has ended. Its owner starts it again after a pause, which grows with each end.',
  },
  silent: {
    tone: 'bad',
    icon: 'warning',
    means: 'It runs, but has reported no progress for longer than stuckAfter.',
  },
  stuck: {
    tone: 'bad',
    icon: 'warning',
    means: 'It was told to stop, and still runs. Its target stays here until it ends.',
  },
};

const MOST_EVENTS = 20;

export function Task({ id, result }: { id: string; result: Result & { state: TaskState } }) {
  const { state, at, by, error, failures = 0, nextAt } = result;
  const { tone, icon, means } = STATES[state];
  return (
    <Panel title="Task">
      <dl class="facts">
        <dt>State</dt>
        <dd>
          <span class={`badge ${tone}`} data-task={state}>
            <Icon name={icon} /> {state}
          </span>{' '}
          since {moment(at)}. {means}
        </dd>
        <dt>On</dt>
        <dd>
          <Owner id={by} />
        </dd>
        <dt>Ends in a row</dt>
        <dd>{failures === 0 ? 'none' : counted(failures, 'end')}</dd>
        {nextAt !== undefined && (
          <>
            <dt>Starts again</dt>
            <dd>
              {moment(nextAt)}, after a pause of {spanOf(Math.max(0, nextAt - at))}
            </dd>
          </>
        )}
        {error !== undefined && (
          <>
            <dt>Error</dt>
            <dd class="bad">{error}</dd>
          </>
        )}
      </dl>
      <Events id={id} />
    </Panel>
  );
}

/** Its last ends, silences and restarts, from the log. */
function Events({ id }: { id: string }) {
  const asked = useAsked({
    key: id,
    ask: async (signal) =>
      (await client.history({ target: id, event: 'run', limit: MOST_EVENTS }, { signal })).events,
  });
  useArrivals(['run'], (come) => {
    if (come.some(({ target }) => target === id)) asked.again(100);
  });
  if (asked.value === null || asked.value.length === 0) return null;
  return (
    <ul class="task-events" aria-label="Events of the task">
      {latestFirst(asked.value).map((event) => (
        <li key={event.position}>
          <span class="quiet">{moment(event.at)}</span>
          <span title={event.event}>{sentenceFor(event)}</span>
        </li>
      ))}
    </ul>
  );
}
