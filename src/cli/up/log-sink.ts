import { systemClock } from '../../base/clock.ts';
import { type PrettyLine, PrettyLog } from '../../telemetry/pretty.ts';
import type { Output } from '../output.ts';
import type { StatusLine } from '../status-line.ts';

/** Lines that nobody reads are kept up to this many bytes; then they are dropped. A log must not stop the work. */
const MOST_BYTES = 4 * 1_048_576;
/** How long the end of the log has to be written. */
const CLOSE_WITHIN_MS = 1_000;

/** Where the lines of the log go. */
export interface LogSink {
  write(line: string): void;
  close(): Promise<void>;
}

/** In words, above the line that shows how far things are. */
export function terminalSink(status: StatusLine, output: Output): LogSink {
  const pretty = new PrettyLog({
    ...{ clock: systemClock, color: output.hasColor, columns: output.columns },
    write: (text) => status.above(text),
  });
  return {
    write: (line) => pretty.add(JSON.parse(line) as PrettyLine),
    close: async () => {
      pretty.flush();
      status.clear();
    },
  };
}

/** JSON to stdout, without waiting for whoever reads it. */
export function stdoutSink(): LogSink {
  // A stream of Node's, unlike elsewhere in the command line: a pipe that is full makes it wait, and not us.
  const { stdout } = process;
  // Nobody reads it any more; the instance goes on.
  stdout.on('error', () => {});
  return {
    write: (line) => {
      if (stdout.writableLength < MOST_BYTES) stdout.write(line);
    },
    close: () =>
      new Promise((resolve) => {
        systemClock.after(CLOSE_WITHIN_MS, resolve);
        stdout.write('', () => resolve());
      }),
  };
}
