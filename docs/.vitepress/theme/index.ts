/// <reference types="vite/client" />
import type { Theme } from 'vitepress';
import theme from 'vitepress/theme-without-fonts';
import './style.css';

type Components = Record<
  string,
  { default: Parameters<NonNullable<Theme['enhanceApp']>>[0]['app']['_component'] }
>;

/** Whatever lies in `components/` can be used in every page, under the name of its file. */
const components = import.meta.glob('./components/*.vue', { eager: true }) as Components;

export default {
  extends: theme,
  enhanceApp({ app }) {
    for (const [path, { default: component }] of Object.entries(components)) {
      app.component(nameOf(path), component);
    }
  },
} satisfies Theme;

/** `./components/timings-calculator.vue` is `<TimingsCalculator />`, and `<timings-calculator />`. */
function nameOf(path: string): string {
  const words = path.replace(/^.*\/|\.vue$/g, '').split('-');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
