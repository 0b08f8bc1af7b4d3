/** Moves a target to another instance, and shows the progress. The owner hands it over when its poll in flight has ended. */
import { useState } from 'preact/hooks';
import type { TargetDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { members } from '../../data/fleet.ts';
import { nameOf } from '../../data/palette.ts';
import { shellWord } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { Owner, Panel } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { type Order, progressOf } from './order.ts';
import type { Past } from './past.ts';

export function Placing({ target, past }: { target: TargetDetail; past: Past }) {
  const [order, setOrder] = useState<Order | null>(null);
  const { planned, preferred, pinned } = target;
  return (
    <Panel title="Placement">
      <dl class="facts">
        <dt>Planned owner</dt>
        <dd>
          <Owner id={planned} none="none" />
        </dd>
        <dt>Preferred owner</dt>
        <dd>
          <Owner id={preferred} none="none" />
        </dd>
        <dt>Pinned to</dt>
        <dd>{pinned === null ? <span class="quiet">not pinned</span> : <Owner id={pinned} />}</dd>
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
  const holder = owner === null ? 'Its next owner' : nameOf(owner);
  const run = async (reason: string) => {
    const { from } = await client.transfer(id, { to, ...(reason !== '' && { reason }) });
    onOrder({ to, from, fence });
  };
  return (
    <div class="transfer">
      <label class="field">
        <span class="quiet small">Move to</span>
        <select value={to} onChange={({ currentTarget }) => setTo(currentTarget.value)}>
          <option value="">{able.length === 0 ? 'no other instance' : 'choose …'}</option>
          {able.map((member) => (
            <option key={member.id} value={member.id}>
              {member.name} ({member.owned} of {member.quota})
            </option>
          ))}
        </select>
      </label>
      <Action
        name="Transfer"
        effect={`${holder} hands ${id} to ${chosen?.name ?? '…'} when the poll in flight has ended. It stays there. The fleet may move another target back, to keep the load even.`}
        cli={`holdfast transfer ${shellWord(id)} ${shellWord(to)}`}
        scope="v3:admin"
        reason="optional"
        disabled={chosen === undefined}
        run={run}
      />
      {pinned !== null && (
        <Action
          name="Unpin"
          effect={`The fleet places ${id} like all other targets again, and may move it.`}
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
    <ol class="order" aria-label="Progress of the transfer" aria-live="polite">
      {steps.map(({ name, isDone }) => (
        <li key={name} class={isDone ? 'done' : ''}>
          <Icon name={isDone ? 'check' : 'waiting'} /> {name}
          <span class="visually-hidden">{isDone ? ', done' : ', not yet'}</span>
        </li>
      ))}
    </ol>
  );
}
