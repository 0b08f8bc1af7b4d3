import type { Clock } from '../base/clock.ts';
import type { Commands } from '../process/commands.ts';
import type { Pipeline } from './pipeline.ts';
import type { CommandPipeline } from './worker-options.ts';

export function commandPipeline(
  _option: CommandPipeline,
  _resource: string | null,
  _parts: { clock: Clock; commands: Commands; graceMs: number },
): Pipeline {
  throw new Error('not yet');
}
