import type { ApiWorkflow } from '../../../../src/client/operating-messages.ts';
import { RUN_STATES, runStateOf, waitsText } from '../../data/run-words.ts';
import { Left } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';

type Of = Pick<ApiWorkflow, 'run' | 'isHeld'>;

/** The state of a workflow's function as one word; nothing where no function runs it. */
export function RunBadge({ of }: { of: Of }) {
  const state = runStateOf(of);
  if (state === null) return null;
  const { word, icon, tone, means } = RUN_STATES[state];
  return (
    <span class={`badge ${tone}`} title={means} data-run={state}>
      <Icon name={icon} /> {word}
    </span>
  );
}

/** What the function waits for and how long, or why it failed. */
export function RunNow({ of, seenAtMs }: { of: Of; seenAtMs: number }) {
  const { run } = of;
  const state = runStateOf(of);
  if (run === null || state === null || state === 'done' || state === 'running') return null;
  if (state === 'due') return <>until an instance runs {run.function}</>;
  if (state === 'failed') return <span title={run.error ?? ''}>{run.error}</span>;
  const next = run.dueInMs !== null && run.dueInMs > 0 && <Left at={seenAtMs + run.dueInMs} />;
  if (state === 'retrying')
    return (
      <span title={run.error ?? ''}>
        again in {next || 'a moment'}: {run.error}
      </span>
    );
  return (
    <span title={waitsText(run)}>
      {state === 'waiting' && 'for '}
      {waitsText(run)}
      {next && (
        <>
          , {state === 'waiting' && 'at most '}
          {next} more
        </>
      )}
    </span>
  );
}
