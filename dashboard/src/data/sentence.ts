/** Entries of the log in words, as the dashboard says them: names instead of ids, sentences instead of codes. */
import type { ApiEvent } from '../../../src/client/messages.ts';
import { sentenceOf } from '../../../src/telemetry/sentences.ts';
import { lossText } from './gaps.ts';
import { nameOf } from './palette.ts';
import { codeName } from './refusal-codes.ts';
import { isSessionId, nameOfSession, namesVersion } from './session-names.ts';
import { reasonText, stateWord } from './session-words.ts';

export function sentenceFor({ position: _, at: __, instance, event, ...facts }: ApiEvent): string {
  namesVersion.value;
  const plain = Object.fromEntries(
    Object.entries(facts).map(([fact, value]) => [fact, plainly({ event, fact, value, instance })]),
  );
  return sentenceOf(event, plain, instance);
}

interface Said {
  readonly event: string;
  readonly fact: string;
  readonly value: unknown;
  readonly instance: string;
}

function plainly({ event, fact, value, instance }: Said): unknown {
  // An instance that tells of itself is not named: the sentence sees that both are the same.
  if (typeof value !== 'string' || value === instance) return value;
  if (isSessionId(value)) return nameOfSession(value) ?? value.slice(0, 8);
  if (fact === 'code') return codeName(value).toLowerCase();
  if (fact === 'reason') return event === 'lease.lost' ? lossText(value) : reasonText(value);
  if (fact === 'state') return stateWord(value);
  return nameOf(value);
}
