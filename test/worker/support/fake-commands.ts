import type { CommandDeadline } from '../../../src/worker/supervisor/command-deadline.ts';
import type {
  CommandOrder,
  CommandOutcome,
  CommandRun,
  Commands,
} from '../../../src/worker/supervisor/commands.ts';

/** Runs nothing: a test says what became of it. */
export class FakeCommands implements Commands {
  order: CommandOrder | undefined;
  readonly orders: [string, CommandDeadline?][] = [];
  end: (outcome: CommandOutcome) => void = () => {};
  progress: (text: string) => void = () => {};
  doubt: () => void = () => {};

  onRun: () => void = () => {};

  run(order: CommandOrder): CommandRun {
    this.order = order;
    this.onRun();
    return {
      started: Promise.resolve({ group: 42, startedTicks: 4711 }),
      outcome: new Promise((resolve) => {
        this.end = resolve;
      }),
      extend: (deadline) => void this.orders.push(['extend', deadline]),
      stop: () => void this.orders.push(['stop']),
      begin: () => void this.orders.push(['begin']),
      signal: () => {},
      onProgress: (listener) => {
        this.progress = listener;
      },
      onDoubt: (listener) => {
        this.doubt = listener;
      },
    };
  }

  async close(): Promise<void> {}
}
