/** Entries of the log in words, as the dashboard says them: names instead of ids, sentences instead of codes. */
import type { ApiEvent } from '../../../src/client/messages.ts';
import { sentenceOf } from '../../../src/telemetry/sentences.ts';
import { nameOf } from './palette.ts';
import { isSessionId, nameOfSession, namesVersion } from './session-names.ts';
import { reasonText, stateWord } from './session-words.ts';

export function sentenceFor({ position: _, at: __, instance, event, ...facts }: ApiEvent): string {
  namesVersion.value;
  const plain = Object.fromEntries(
    Object.entries(facts).map(([fact, value]) => [fact, plainly(fact, value, instance)]),
  );
  return sentenceOf(event, plain, instance);
}

function plainly(fact: string, value: unknown, instance: string): unknown {
  // An instance that tells of itself is not named: the sentence sees that both are the same.
  if (typeof value !== 'string' || value === instance) return value;
  if (isSessionId(value)) return nameOfSession(value) ?? value.slice(0, 8);
  if (fact === 'reason') return reasonText(value);
  if (fact === 'state') return stateWord(value);
  return nameOf(value);
}
