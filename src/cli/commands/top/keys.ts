/** The keys of `holdfast top`. */

import type { KeyState } from './drawing.ts';
import { ORDERS } from './top-state.ts';

/** Longer than any id. */
const LONGEST_FILTER = 128;

const CTRL_C = '\u0003';
const ESCAPE = '\u001b';
const ENTER = /^[\r\n]$/;
const ERASE = /^[\u007f\b]$/;
/** The characters of ids. A filter has no others, whatever a user pastes. */
const TYPED = /^[\u0021-\u007e\u00a1-\uffff]$/;
/** Arrows and function keys, which terminals send as several characters. They do nothing here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
const SEQUENCE = /\u001b[[O][0-9;]*[A-Za-z~]/g;

export const NO_KEYS: KeyState = {
  filter: '',
  isTyping: false,
  order: 'name',
  isPaused: false,
  isHelp: false,
};

/** The state after the input; null: quit. */
export function pressed(state: KeyState, input: string): KeyState | null {
  let next: KeyState | null = state;
  for (const key of input.replace(SEQUENCE, '')) {
    next = next.isTyping ? typed(next, key) : commanded(next, key);
    if (next === null) return null;
  }
  return next;
}

function typed(state: KeyState, key: string): KeyState | null {
  const { filter } = state;
  if (key === CTRL_C) return null;
  if (key === ESCAPE) return { ...state, filter: '', isTyping: false };
  if (ENTER.test(key)) return { ...state, isTyping: false };
  if (ERASE.test(key)) return { ...state, filter: filter.slice(0, -1) };
  if (!TYPED.test(key) || filter.length >= LONGEST_FILTER) return state;
  return { ...state, filter: filter + key };
}

function commanded(state: KeyState, key: string): KeyState | null {
  const { order, isPaused, isHelp } = state;
  if (key === 'q' || key === CTRL_C) return null;
  if (key === '/') return { ...state, isTyping: true, isHelp: false };
  if (key === ESCAPE) return { ...state, filter: '', isHelp: false };
  if (key === 's') {
    const next = ORDERS[(ORDERS.indexOf(order) + 1) % ORDERS.length] ?? order;
    return { ...state, order: next };
  }
  if (key === 'p') return { ...state, isPaused: !isPaused };
  if (key === '?') return { ...state, isHelp: !isHelp };
  return state;
}
