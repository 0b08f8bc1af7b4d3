// How every poller of the tests polls: it tells the target server who it is, when it began, and its fence if it has one.
// The names of the headers are those of test/support/target-server.ts.
import { Agent, get } from 'node:http';

// A fleet member has a few dozen polls under way at most; a connection for each of them, kept.
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** Resolves with the status once the answer has been read to its end; rejects when the signal aborts. */
export function pollTarget(url, { instance, fence, signal }) {
  return new Promise((resolve, reject) => {
    const headers = {
      'x-instance': instance,
      'x-started': String(process.hrtime.bigint()),
      ...(fence !== undefined && { 'holdfast-fence': String(fence) }),
    };
    get(url, { agent, headers, signal }, (response) => {
      response.once('error', reject);
      response.resume().once('end', () => resolve(response.statusCode));
    }).once('error', reject);
  });
}
