/** Between two tries, where the client has given up: what the server says then need not be so for ever. */
export const AGAIN_MS = 2_000;

/** Ends early when the signal fires; never rejects. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
