/** HTML that was made by the `html` template, so it need not be escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | readonly (Html | string)[];

/** Template tag. Strings are escaped; `Html` and lists of it are inserted as they are. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = strings[0] ?? '';
  for (const [i, part] of parts.entries()) text += shown(part) + (strings[i + 1] ?? '');
  return new Html(text);
}

export const NOTHING = new Html('');

function shown(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(shown).join('');
  return escaped(String(part));
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
