/** The explanation of a gap: in words, as a sum, and as a drawing. */
import type { Explanation, Stretch } from '../../data/gaps.ts';
import { clockTime, exactly } from '../../data/words.ts';
import '../../style/explanation.css';

export function ExplanationText({ of }: { of: Explanation }) {
  const { steps, stretches, sum, unsaid } = of;
  return (
    <div class="tl-why">
      {stretches !== null && <Drawing stretches={stretches} />}
      {steps.length > 0 && (
        <ol>
          {steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      )}
      {sum !== null && (
        <p class="tl-sum">
          <span class="visually-hidden">The sum: </span>
          {sum}.
        </p>
      )}
      {unsaid.length > 0 && (
        <ul class="quiet small">
          {unsaid.map((what) => (
            <li key={what}>{what}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Not to scale: a wake-up of milliseconds would not be seen beside a TTL of half a minute. */
function Drawing({ stretches }: { stretches: readonly Stretch[] }) {
  const last = stretches.at(-1);
  const words = stretches
    .map(({ name, lengthMs }) => `${name} ${exactly(lengthMs)}`)
    .join(', then ');
  return (
    <figure class="tl-drawing">
      <div role="img" aria-label={`Drawing, not to scale: ${words}.`}>
        {stretches.map(({ name, fromMs, lengthMs, isOwned }) => (
          <div key={name} class={isOwned ? 'stretch owned' : 'stretch'}>
            <span class="what">
              {name} <b>{exactly(lengthMs)}</b>
            </span>
            <span class="line" />
            <span class="when">{clockTime(fromMs)}</span>
          </div>
        ))}
        {last !== undefined && (
          <span class="end when">{clockTime(last.fromMs + last.lengthMs)}</span>
        )}
      </div>
      <figcaption class="quiet small">
        Last renewal, lease expired, next owner asked, store granted. Not to scale.
      </figcaption>
    </figure>
  );
}
