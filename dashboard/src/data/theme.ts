/** Light or dark: as the device says, until the user chooses. */
import { effect, signal } from '@preact/signals';

const KEPT = 'holdfast.theme';
const isDark = matchMedia('(prefers-color-scheme: dark)');

export const theme = signal<'light' | 'dark'>(chosen() ?? (isDark.matches ? 'dark' : 'light'));

isDark.addEventListener('change', ({ matches }) => {
  if (chosen() === null) theme.value = matches ? 'dark' : 'light';
});

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function turnTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  localStorage.setItem(KEPT, theme.value);
}

function chosen(): 'light' | 'dark' | null {
  const kept = localStorage.getItem(KEPT);
  return kept === 'light' || kept === 'dark' ? kept : null;
}
