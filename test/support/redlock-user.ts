/**
 * A program as users of redlock 5 write it. It is compiled here with Holdfast's, and by a test with redlock's own types too: only the
 * name of the import differs. It is never run.
 */
import { Redis } from 'ioredis';
import Redlock, {
  ExecutionError,
  type ExecutionResult,
  type ExecutionStats,
  Lock,
  type RedlockAbortSignal,
  ResourceLockedError,
  type Settings,
} from '../../src/redlock/index.ts';

const patience: Partial<Settings> = { retryCount: 5, retryDelay: 100 };

export const redlock = new Redlock([new Redis({ host: 'a.redis.example.com' })], {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 200,
  automaticExtensionThreshold: 500,
});

export const plain: Redlock = new Redlock(new Set([new Redis('redis://localhost:6379')]));

redlock.on('error', (error) => {
  if (error instanceof ResourceLockedError) return;
  console.error(error);
});

export async function byHand(resources: string[]): Promise<ExecutionResult> {
  let lock: Lock = await redlock.acquire(resources, 5_000);
  try {
    lock = await lock.extend(5_000);
    lock = await redlock.extend(lock, 5_000, { retryCount: 0 });
  } finally {
    await redlock.release(lock, patience);
  }
  return lock.release();
}

export async function withRoutine(senderId: string, recipientId: string): Promise<number> {
  const routine = async (signal: RedlockAbortSignal): Promise<number> => {
    if (signal.aborted) throw signal.error;
    await fetch('http://localhost/', { signal });
    return 42;
  };
  await redlock.using([senderId], 5_000, patience, routine);
  const other = await redlock.using([recipientId], 5_000, async (signal) => !signal.aborted);
  return (await redlock.using([senderId, recipientId], 5_000, routine)) + Number(other);
}

export async function describe(error: unknown, lock: unknown): Promise<string[]> {
  if (lock instanceof Lock) {
    const leftMs: number = lock.expiration - Date.now();
    const { value, resources, attempts }: Lock = lock;
    return [value, ...resources, String(leftMs), String(attempts.length)];
  }
  if (!(error instanceof ExecutionError)) throw error;
  const stats: ExecutionStats[] = await Promise.all(error.attempts);
  const isQuorum = stats.some(({ votesFor, quorumSize }) => votesFor.size >= quorumSize);
  const against = stats.flatMap(({ votesAgainst }) => [...votesAgainst.values()]);
  return [error.message, String(isQuorum), ...against.map(({ message }) => message)];
}

export async function quit(): Promise<void> {
  const { retryCount }: Settings = redlock.settings;
  if (redlock.clients.size > 0 && retryCount >= 0) await redlock.quit();
}
