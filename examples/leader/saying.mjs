/** Tells the people at the terminal, and whoever started this process, what has happened in it, and when. */
import { paint, sinceStartMs, tell } from '../staging/telling.mjs';

const WORDS = {
  serves: ({ port }) => `answers on port ${port}`,
  elected: ({ fence }) => paint(32, `leads, fence ${fence}`),
  lost: ({ reason }) => paint(31, `does not lead any more: ${reason}`),
};

export function saying(name) {
  return (said, facts) => {
    tell(name, WORDS[said](facts));
    process.send({ said, atMs: sinceStartMs(), ...facts });
  };
}
