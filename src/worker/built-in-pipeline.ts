import type { PipelineFunction } from './pipeline.ts';

export const builtIn: PipelineFunction = (_, { signal }) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
