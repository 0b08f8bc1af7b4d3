import type { Excerpt } from '../../../../src/client/operating-messages.ts';
import { sizeText } from '../../data/words.ts';

/** A value as text, closed at first: its size says whether it is worth a look. */
export function Value({ name, of: { bytes, text, isCut } }: { name: string; of: Excerpt }) {
  return (
    <details class="work-value">
      <summary>
        {name} <span class="quiet small">{sizeText(bytes)}</span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre class="work-text" tabIndex={0}>
        {isCut ? `${text} …` : indented(text)}
      </pre>
      {isCut && (
        <p class="quiet small">
          The beginning of {sizeText(bytes)}; <code>holdfast workflows show --json</code> has all of
          it.
        </p>
      )}
    </details>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
