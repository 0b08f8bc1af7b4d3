import type { Holdfast } from '../../holdfast.ts';
import type { Poller } from '../../polling/poller.ts';
import type { Log } from '../../telemetry/log.ts';
import type { StatusLine } from '../status-line.ts';

/** One instance, and where it says what it does. */
export interface Instance {
  readonly holdfast: Holdfast;
  readonly poller: Poller;
  readonly log: Log;
  /** Present on a terminal. */
  readonly status: StatusLine | null;
}
