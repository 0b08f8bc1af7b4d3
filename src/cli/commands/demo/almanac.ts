import type { Holdfast } from '../../../holdfast.ts';

export const ALMANAC = 'almanac';
const PRESS = 'press';
/** As often as it is tried before somebody has to look at it. */
const TRIES = 2;

/**
 * Something that fails until an operator has it tried again: so that there is a dead letter, and a
 * retry that helps.
 */
export async function printAlmanac(holdfast: Holdfast): Promise<void> {
  const tried = new Map<string, number>();
  const processor = holdfast.processor({
    name: PRESS,
    role: 'effect',
    tries: TRIES,
    handlers: {
      PRINT: (_payload, { actionId }) => {
        const before = tried.get(actionId) ?? 0;
        tried.set(actionId, before + 1);
        if (before < TRIES) throw new Error('the press is out of paper');
        return { pages: 365 };
      },
    },
  });
  await processor.start();
  const writer = await holdfast.workflows.claim(ALMANAC);
  await writer.emit('PRINT', { copies: 1 }, { target: PRESS });
}
