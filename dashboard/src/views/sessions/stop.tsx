/** Stops a session for this client or, for administrators, for all clients. */
import { useState } from 'preact/hooks';
import type { AcceptedIntent, RunSession } from '../../../../src/client/messages.ts';
import { about, client } from '../../data/access.ts';
import { stateWord } from '../../data/session-words.ts';
import { counted } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { stopCommand } from './commands.ts';

export function Stop({ session, onStopped }: { session: RunSession; onStopped(): void }) {
  const { id, state, clients, tenant } = session;
  const [outcome, setOutcome] = useState<string | null>(null);
  const asker = { client: about.value?.tokenId ?? 'dashboard', tenant };
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
          effect={`The client ${asker.client} leaves this session, which has ${counted(clients, 'client')}. Holdfast stops it when the last client has left.`}
          cli={stopCommand(id, asker, false)}
          run={() => stop(false)}
        />
        <Action
          name="Force stop"
          scope="v3:admin"
          danger
          disabled={isOver}
          effect={`Stops it at once for all its clients: ${counted(clients, 'client')}.`}
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
    ? `It keeps running for ${counted(clients, 'other client')}.`
    : `Its last client has left. State: ${stateWord(state)}.`;
}
