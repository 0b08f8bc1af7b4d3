/** Has a target moved to a member, and shows how far that is: the holder carries it out, when its poll in flight has ended. */
import { useState } from 'preact/hooks';
import type { TargetDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { members } from '../../data/fleet.ts';
import { nameOf } from '../../data/palette.ts';
import { shellWord } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { Owner, Panel } from '../../parts/basics.tsx';
import { type Order, progressOf } from './order.ts';
import type { Past } from './past.ts';

export function Placing({ target, past }: { target: TargetDetail; past: Past }) {
  const [order, setOrder] = useState<Order | null>(null);
  const { planned, preferred, pinned } = target;
  return (
    <Panel title="Where it is placed">
      <dl class="facts">
        <dt>Planned for</dt>
        <dd>
          <Owner id={planned} />
        </dd>
        <dt>Likes best</dt>
        <dd>
          <Owner id={preferred} />
        </dd>
        <dt>Pinned to</dt>
        <dd>
          {pinned === null ? (
            <span class="quiet">nobody: the plan places it</span>
          ) : (
            <Owner id={pinned} />
          )}
        </dd>
      </dl>
      <Transfer target={target} onOrder={setOrder} />
      {order !== null && <Progress {...{ order, target, past }} />}
    </Panel>
  );
}

function Transfer({ target, onOrder }: { target: TargetDetail; onOrder(order: Order): void }) {
  const { id, owner, pinned, fence } = target;
  const [to, setTo] = useState('');
  const able = members.value.filter(
    (member) => member.id !== owner && !member.isDraining && !member.isForeign,
  );
  const chosen = able.find((member) => member.id === to);
  const holder = owner === null ? 'Whoever has it' : nameOf(owner);
  const run = async (reason: string) => {
    const { from } = await client.transfer(id, { to, ...(reason !== '' && { reason }) });
    onOrder({ to, from, fence });
  };
  return (
    <div class="transfer">
      <label class="field">
        <span class="quiet small">Move it to</span>
        <select value={to} onChange={({ currentTarget }) => setTo(currentTarget.value)}>
          <option value="">{able.length === 0 ? 'nobody else may have it' : 'choose …'}</option>
          {able.map((member) => (
            <option key={member.id} value={member.id}>
              {member.name} ({member.owned} of {member.quota})
            </option>
          ))}
        </select>
      </label>
      <Action
        name="Transfer"
        effect={`${holder} hands ${id} to ${chosen?.name ?? '…'} as soon as the poll in flight has ended. It stays there; another target goes the other way where that is needed for an even share.`}
        cli={`holdfast transfer ${shellWord(id)} ${shellWord(to)}`}
        scope="v3:admin"
        reason="optional"
        disabled={chosen === undefined}
        run={run}
      />
      {pinned !== null && (
        <Action
          name="Unpin"
          effect={`${id} is placed as all the others are again, and may move.`}
          cli={`holdfast unpin ${shellWord(id)}`}
          scope="v3:admin"
          run={() => client.unpin(id)}
        />
      )}
    </div>
  );
}

function Progress({ order, target, past }: { order: Order; target: TargetDetail; past: Past }) {
  past.version.value;
  const steps = progressOf(order, target.owner, past.tenures());
  return (
    <ol class="order" aria-label="How far the transfer is" aria-live="polite">
      {steps.map(({ name, isDone }) => (
        <li key={name} class={isDone ? 'done' : ''}>
          <span aria-hidden="true">{isDone ? '✓' : '…'}</span> {name}
          <span class="visually-hidden">{isDone ? ', done' : ', not yet'}</span>
        </li>
      ))}
    </ol>
  );
}
