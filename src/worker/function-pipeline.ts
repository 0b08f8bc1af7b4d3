import type { Clock } from '../base/clock.ts';
import type { Pipeline, PipelineEnd, PipelineFunction } from './pipeline.ts';

export function functionPipeline(
  run: PipelineFunction,
  resource: string | null,
  { clock }: { clock: Clock },
): Pipeline {
  return {
    resource,
    start: (session, hold) => {
      const startMs = clock.monotonicMs();
      const work = async () => run(session, hold);
      const tookMs = () => clock.monotonicMs() - startMs;
      const how = (natural: PipelineEnd['how']) => (hold.signal.aborted ? 'stopped' : natural);
      const ended = work().then(
        (result): PipelineEnd => {
          const detail = { tookMs: tookMs(), ...(result !== undefined && { result }) };
          return { how: how('completed'), isGone: true, detail };
        },
        (error): PipelineEnd => {
          return {
            how: how('failed'),
            isGone: true,
            detail: { tookMs: tookMs(), error: String(error) },
          };
        },
      );
      return { started: Promise.resolve(null), ended, extend: () => {}, stop: () => {} };
    },
  };
}
