import type { HoldfastConfig } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { WorkerOptions } from '../../../worker/worker-options.ts';

/** What a configuration says under `worker`; the rest of what a worker is told stands beside it. */
const OWN = ['name', 'starts', 'ttl', 'grace'];

/** The worker that is configured. What makes no sense about it is called as the configuration calls it. */
export function workerOf(holdfast: Holdfast, settings: HoldfastConfig): Worker {
  try {
    return holdfast.worker(workerOptions(settings));
  } catch (error) {
    if (!(error instanceof ConfigError) || !OWN.includes(error.field)) throw error;
    const { field, value, rule } = error;
    throw new ConfigError({ field: `worker.${field}`, value, rule });
  }
}

function workerOptions({ resources, pipelines, worker }: HoldfastConfig): WorkerOptions {
  return {
    ...worker,
    ...(resources !== undefined && { resources }),
    ...(pipelines !== undefined && { pipelines }),
  };
}
