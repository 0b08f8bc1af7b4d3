/**
 * A template tag that escapes what is inserted, for the pages that Holdfast makes. Without it,
 * text from outside could become markup.
 */
/** Only this file can set it, so text from outside never counts as `Html`. */
const IS_HTML = Symbol('html');

/** HTML that was made by the `html` template, so it need not be escaped. */
export interface Html {
  readonly text: string;
  readonly [IS_HTML]: true;
}

type Part = Html | string | number | readonly (Html | string)[];

/** Template tag. Strings are escaped; `Html` and lists of it are inserted as they are. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = strings[0] ?? '';
  for (const [i, part] of parts.entries()) text += shown(part) + (strings[i + 1] ?? '');
  return { text, [IS_HTML]: true };
}

export const NOTHING: Html = { text: '', [IS_HTML]: true };

function shown(part: Part): string {
  if (typeof part !== 'object') return escaped(String(part));
  return IS_HTML in part ? part.text : part.map(shown).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** Text in which backticks mark `code`. */
export function prose(text: string): Html {
  const pieces = text
    .split('`')
    .map((piece, i) => (i % 2 === 0 ? html`${piece}` : html`<code>${piece}</code>`));
  return html`${pieces}`;
}
