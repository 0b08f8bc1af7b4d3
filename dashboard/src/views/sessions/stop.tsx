/** Says that the one who looks does not need a session any more; or, for administrators, that nobody does. */
import { useState } from 'preact/hooks';
import type { AcceptedIntent, RunSession } from '../../../../src/client/messages.ts';
import { about, client } from '../../data/access.ts';
import { counted } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { stopCommand } from './commands.ts';

export function Stop({ session, onStopped }: { session: RunSession; onStopped(): void }) {
  const { id, state, clients, tenant } = session;
  const [outcome, setOutcome] = useState<string | null>(null);
  const asker = { client: about.value?.tokenId ?? 'page', tenant };
  const isOver = state === 'ENDED';
  const stop = async (force: boolean) => {
    const said = await client.stop(id, { clientId: asker.client, ...(force && { force }) });
    setOutcome(whatCame(said));
    onStopped();
  };
  return (
    <>
      <div class="buttons work-actions">
        <Action
          name="Stop"
          scope="v3:write"
          disabled={isOver}
          effect={`The client ${asker.client} does not need this session any more. It has ${counted(clients, 'client')}; when the last one says so, it is stopped.`}
          cli={stopCommand(id, asker, false)}
          run={() => stop(false)}
        />
        <Action
          name="Force stop"
          scope="v3:admin"
          danger
          disabled={isOver}
          effect={`Stops it, whoever else needs it: ${counted(clients, 'client')}.`}
          cli={stopCommand(id, asker, true)}
          run={() => stop(true)}
        />
      </div>
      {outcome !== null && <p role="status">{outcome}</p>}
    </>
  );
}

function whatCame({ state, clients }: AcceptedIntent): string {
  return clients > 0
    ? `It goes on: ${counted(clients, 'client')} still need it.`
    : `Nobody needs it any more; it is ${state}.`;
}
