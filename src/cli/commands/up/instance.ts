import type { FleetService } from '../../../fleet/fleet-service.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { StatusOutput } from '../../ui/status-output.ts';
import type { UpServer } from './up-server.ts';

/** One running instance, its log and its terminal. */
export interface Instance {
  readonly holdfast: Holdfast;
  /** Present with the role `poller`: a poller or a runner. */
  readonly poller: FleetService | null;
  /** Present with the role `worker`. */
  readonly worker: Worker | null;
  /** Present with the role `api`. */
  readonly door: UpServer | null;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusOutput | null;
}
