/** Streams that the dashboard follows for as long as it is open. */
import { HoldfastApiError } from '../../../src/client/index.ts';
import { refused } from './access.ts';
import { AGAIN_MS, pause } from './pause.ts';

/**
 * Follows a stream again and again, whatever the server answers in between, until the dashboard is closed or its token is refused.
 * `onEnd` is told each time that the stream has ended: with the error, or with null if the server ended it.
 */
export async function followAgain(
  signal: AbortSignal,
  follow: (signal: AbortSignal) => Promise<void>,
  onEnd: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    const error = await follow(signal).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (signal.aborted) return;
    if (error instanceof HoldfastApiError && error.status === 401) return refused();
    onEnd(error);
    await pause(AGAIN_MS, signal);
  }
}
