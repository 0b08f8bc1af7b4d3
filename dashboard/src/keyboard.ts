/** Keys that work in every view: `g` and a letter opens a view, `/` searches, `?` shows help. They do nothing while the user types. */
import { signal } from '@preact/signals';
import { go, hrefOf } from './router.ts';
import { VIEWS } from './views.ts';

export const isHelpShown = signal(false);

/** How long after `g` the letter may come. */
const PATIENCE_MS = 1_200;
let goingUntilMs = 0;

export function listenToKeys(signal: AbortSignal): void {
  addEventListener('keydown', onKey, { signal });
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === '?') isHelpShown.value = !isHelpShown.value;
  else if (event.key === '/') focusSearch(event);
  else if (event.key === 'g') goingUntilMs = event.timeStamp + PATIENCE_MS;
  else if (event.timeStamp < goingUntilMs) follow(event.key);
}

function follow(letter: string): void {
  goingUntilMs = 0;
  const found = Object.entries(VIEWS).find(
    ([, { key, otherKeys = '' }]) => key === letter || otherKeys.includes(letter),
  );
  if (found !== undefined) go(hrefOf(found[0]));
}

/** A view marks its search field. */
function focusSearch(event: KeyboardEvent): void {
  const input = document.querySelector<HTMLInputElement>('[data-search]');
  if (input === null) return;
  event.preventDefault();
  input.focus();
  input.select();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
