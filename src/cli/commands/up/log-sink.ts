import { systemClock } from '../../../core/clock.ts';
import { type PrettyLine, PrettyLog } from '../../../telemetry/pretty.ts';
import { type Output, write } from '../../ui/output.ts';
import type { StatusOutput } from '../../ui/status-output.ts';

/** Writes the lines of the log. */
export interface LogSink {
  write(line: string): void;
  close(): void;
}

/** As text, above the progress line. */
export function terminalSink(status: StatusOutput, output: Output): LogSink {
  const pretty = new PrettyLog({
    clock: systemClock,
    color: output.hasColor,
    columns: output.columns,
    write: (text) => status.above(text),
  });
  return {
    write: (line) => pretty.add(JSON.parse(line) as PrettyLine),
    close: () => {
      pretty.flush();
      status.clear();
    },
  };
}

/** JSON to stdout. */
export const stdoutSink: LogSink = {
  write: (line) => void write(1, line),
  close: () => {},
};
