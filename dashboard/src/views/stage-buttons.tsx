/** Buttons to do to an instance what the night does: only where the server has instances for it. At once, and without asking: that is what they are for. */
import { useState } from 'preact/hooks';
import type { StageAction } from '../../../src/client/operating-messages.ts';
import { may } from '../data/access.ts';
import { type Actor, actorOf, direct } from '../data/stage.ts';
import '../style/stage-buttons.css';

const EFFECTS: Readonly<Record<StageAction, string>> = {
  kill: 'Ends its process without a warning, as a crash does',
  freeze: 'Stops its process where it is, as a long pause does',
  thaw: 'Lets its process go on',
  start: 'Starts it again, as a new instance',
};

/** Which make sense when. */
const OFFERED: Readonly<Record<Actor['state'], readonly StageAction[]>> = {
  running: ['kill', 'freeze'],
  frozen: ['thaw', 'kill'],
  starting: ['kill'],
  dead: ['start'],
};

export function StageButtons({ member, name }: { member: string; name: string }) {
  const actor = actorOf(member, name);
  return actor === undefined ? null : <ActorButtons actor={actor} />;
}

export function ActorButtons({ actor: { name, state } }: { actor: Actor }) {
  const [isBusy, setBusy] = useState(false);
  const isAllowed = may('v3:admin');
  const act = async (action: StageAction) => {
    setBusy(true);
    await direct(name, action);
    setBusy(false);
  };
  return (
    <div class="stage-buttons">
      {state !== 'running' && <span class="badge warn">{state}</span>}
      {OFFERED[state].map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'kill' ? 'danger' : ''}
          disabled={isBusy || !isAllowed}
          title={isAllowed ? EFFECTS[action] : 'This needs a token with the scope v3:admin.'}
          aria-label={`${action} ${name}`}
          onClick={() => void act(action)}
        >
          {action}
        </button>
      ))}
    </div>
  );
}
