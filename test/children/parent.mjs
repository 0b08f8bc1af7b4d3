// What children say to the test that started them, and how they are told what to do: a line of JSON each, over stdout and stdin.
// `test/support/child.ts` is the other end.
import { createInterface } from 'node:readline';

/** On the clock that all processes of a host share. */
export const hostMs = () => Number(process.hrtime.bigint()) / 1e6;

export const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

/** What nobody has caught is told, and the child ends badly. */
export function tellUnhandled() {
  process.on('unhandledRejection', (error) => {
    say({ event: 'unhandled', error: String(error?.stack ?? error) });
    process.exitCode = 1;
  });
}

/**
 * Does what it is told from now on, `{"do": "acquire", …}` by the command of that name, and says what came of it. The function returned ends that: nothing
 * of it keeps the process alive then.
 */
export function obey(commands) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const { do: what, ...facts } = JSON.parse(line);
    try {
      say({ event: what, ...(await commands[what](facts)) });
    } catch (error) {
      const { seen, message } = error;
      say({ event: what, error: error.code ?? String(error), seen, message });
    }
  });
  return () => {
    lines.close();
    process.stdin.destroy();
  };
}
