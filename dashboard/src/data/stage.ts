/** Instances that are there to be killed, where the server has such: `holdfast demo`. */
import { signal } from '@preact/signals';
import type { StageAction, StagePicture } from '../../../src/client/operating-messages.ts';
import { about, client, messageOf } from './access.ts';

export type Actor = StagePicture['actors'][number];

const LOOK_EVERY_MS = 1_000;

export const actors = signal<readonly Actor[]>([]);
export const stageTrouble = signal<string | null>(null);

/** For as long as a view shows them. */
export function followStage(end: AbortSignal): void {
  if (about.value?.stage !== true) return;
  const look = () => {
    if (document.visibilityState === 'visible') void told(client.stage({ signal: end }), end);
  };
  look();
  const timer = setInterval(look, LOOK_EVERY_MS);
  end.addEventListener('abort', () => clearInterval(timer));
}

export async function direct(name: string, action: StageAction): Promise<void> {
  await told(client.direct(name, action));
}

async function told(answer: Promise<StagePicture>, end?: AbortSignal): Promise<void> {
  try {
    actors.value = (await answer).actors;
    stageTrouble.value = null;
  } catch (error) {
    if (!end?.aborted) stageTrouble.value = messageOf(error);
  }
}

/** Who plays that member; one that was just killed has no instance any more, but its name. */
export function actorOf(member: string, name: string): Actor | undefined {
  return (
    actors.value.find(({ instance }) => instance === member) ??
    actors.value.find((actor) => actor.instance === null && actor.name === name)
  );
}
