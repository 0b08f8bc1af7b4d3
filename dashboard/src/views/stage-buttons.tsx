/** Buttons of the demo: they kill, freeze, thaw and start an instance, at once and without a dialog. */
import { useState } from 'preact/hooks';
import type { StageAction } from '../../../src/client/operating-messages.ts';
import { may } from '../data/access.ts';
import { type Actor, actorOf, direct } from '../data/stage.ts';
import '../style/stage-buttons.css';

const EFFECTS: Readonly<Record<StageAction, string>> = {
  kill: 'Kills the process at once, like a crash (SIGKILL)',
  freeze: 'Freezes the process, like a long pause (SIGSTOP)',
  thaw: 'Lets the process continue (SIGCONT)',
  start: 'Starts a new process with the same name',
};

/** Which actions are possible in which state. */
const OFFERED: Readonly<Record<Actor['state'], readonly StageAction[]>> = {
  running: ['kill', 'freeze'],
  frozen: ['thaw', 'kill'],
  starting: ['kill'],
  dead: ['start'],
};

/** Dead is worse than frozen, and frozen is worse than a late heartbeat. */
const LEVELS: Readonly<Record<Actor['state'], string>> = {
  running: 'good',
  starting: 'info',
  frozen: 'bad',
  dead: 'bad solid',
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
      {state !== 'running' && <span class={`badge ${LEVELS[state]}`}>{state}</span>}
      {OFFERED[state].map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'kill' ? 'danger' : ''}
          disabled={isBusy || !isAllowed}
          title={isAllowed ? EFFECTS[action] : 'You need a token with the scope v3:admin.'}
          aria-label={`${action} ${name}`}
          onClick={() => void act(action)}
        >
          {action.replace(/^./, (first) => first.toUpperCase())}
        </button>
      ))}
    </div>
  );
}
