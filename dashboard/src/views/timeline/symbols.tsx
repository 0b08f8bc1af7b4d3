/** Events as shapes with letters, for readers who cannot tell the colours apart. */
import type { MarkKind } from '../../data/story.ts';
import { Icon } from '../../parts/icon.tsx';

interface Symbol {
  readonly letter: string;
  readonly name: string;
  readonly shape: 'diamond' | 'circle' | 'square' | 'triangle';
  readonly tone: 'bad' | 'warn' | 'plain' | 'good';
}

export const SYMBOLS: Readonly<Record<MarkKind, Symbol>> = {
  crash: { letter: 'X', name: 'crash', shape: 'diamond', tone: 'bad' },
  outage: { letter: 'S', name: 'store unavailable', shape: 'square', tone: 'bad' },
  forgot: { letter: 'F', name: 'store may have lost data', shape: 'square', tone: 'bad' },
  quarantine: { letter: 'Q', name: 'quarantine', shape: 'square', tone: 'warn' },
  revoke: { letter: 'R', name: 'revoked', shape: 'diamond', tone: 'warn' },
  drain: { letter: 'D', name: 'drain', shape: 'triangle', tone: 'warn' },
  undrain: { letter: 'U', name: 'drain undone', shape: 'triangle', tone: 'good' },
  pause: { letter: 'P', name: 'paused', shape: 'circle', tone: 'plain' },
  resume: { letter: 'G', name: 'resumed', shape: 'circle', tone: 'good' },
  joined: { letter: 'J', name: 'joined', shape: 'circle', tone: 'good' },
  left: { letter: 'L', name: 'left', shape: 'circle', tone: 'plain' },
  operator: { letter: 'O', name: 'operator acted', shape: 'triangle', tone: 'plain' },
};

export function Glyph({ kind }: { kind: MarkKind }) {
  const { letter, shape, tone } = SYMBOLS[kind];
  return (
    <i class={`glyph ${shape} ${tone}`} aria-hidden="true">
      <b>{letter}</b>
    </i>
  );
}

export function Legend() {
  return (
    <ul class="tl-legend quiet small" aria-label="Legend">
      <li>
        <i class="tl-key bar" aria-hidden="true" /> owned
      </li>
      <li>
        <i class="tl-key failover" aria-hidden="true" /> no owner
      </li>
      <li>
        <i class="tl-key handover" aria-hidden="true">
          <Icon name="right" />
        </i>{' '}
        handover
      </li>
      <li>
        <i class="tl-key crowd" aria-hidden="true">
          2
        </i>{' '}
        several changes: zoom in
      </li>
      {Object.entries(SYMBOLS).map(([kind, { name }]) => (
        <li key={kind}>
          <Glyph kind={kind as MarkKind} /> {name}
        </li>
      ))}
    </ul>
  );
}
