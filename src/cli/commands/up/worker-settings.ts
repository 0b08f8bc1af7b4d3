import type { HoldfastConfig } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { WorkerOptions } from '../../../worker/worker-options.ts';

/** The options under `worker` in a configuration. Other options of a worker stand beside it. */
const OWN = ['name', 'kinds', 'starts', 'ttl', 'grace'];

/** Makes the configured worker. Its errors use the names of the configuration. */
export function workerOf(holdfast: Holdfast, settings: HoldfastConfig): Worker {
  try {
    return holdfast.worker(workerOptions(settings));
  } catch (error) {
    if (!(error instanceof ConfigError) || !OWN.includes(error.field)) throw error;
    const { field, value, rule } = error;
    throw new ConfigError({ field: `worker.${field}`, value, rule });
  }
}

function workerOptions({ pools, resources, pipelines, worker }: HoldfastConfig): WorkerOptions {
  return {
    ...worker,
    ...(pools !== undefined && { pools }),
    ...(resources !== undefined && { resources }),
    ...(pipelines !== undefined && { pipelines }),
  };
}
