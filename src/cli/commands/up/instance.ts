import type { Poller } from '../../../fleet/poller.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { Worker } from '../../../worker/worker.ts';
import type { StatusLine } from '../../ui/status-line.ts';
import type { FrontDoor } from './front-door.ts';

/** One running instance, its log and its terminal. */
export interface Instance {
  readonly holdfast: Holdfast;
  /** Present with the role `poller`. */
  readonly poller: Poller | null;
  /** Present with the role `worker`. */
  readonly worker: Worker | null;
  /** Present with the role `api`. */
  readonly door: FrontDoor | null;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusLine | null;
}
