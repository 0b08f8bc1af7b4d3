/** Starts a channel or a recording, as `holdfast intents start` does. */
import { useState } from 'preact/hooks';
import type { AcceptedIntent } from '../../../../src/client/messages.ts';
import { about, client } from '../../data/access.ts';
import { sessionLabel } from '../../data/session-lookup.ts';
import { Action } from '../../parts/action.tsx';
import { Panel } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { type Start, startCommand } from './commands.ts';

const NOTHING: Start = { kind: 'live', ref: '', profile: '', startMs: 0 };

export function StartForm() {
  const [start, setStart] = useState(NOTHING);
  const [accepted, setAccepted] = useState<AcceptedIntent | null>(null);
  const asker = {
    client: about.value?.tokenId ?? 'dashboard',
    tenant: about.value?.tenant ?? null,
  };
  const set = (change: Partial<Start>) => setStart({ ...start, ...change });
  const what = start.kind === 'live' ? 'channel' : 'recording';
  return (
    <Panel title="Start a session">
      <div class="work-filters">
        <label class="field">
          Kind
          <select
            value={start.kind}
            onChange={({ currentTarget: { value } }) =>
              set({ kind: value === 'vod' ? 'vod' : 'live' })
            }
          >
            <option value="live">channel (live)</option>
            <option value="vod">recording (vod)</option>
          </select>
        </label>
        <label class="field grow">
          {start.kind === 'live' ? 'Channel' : 'Recording'}
          <input
            value={start.ref}
            maxLength={512}
            placeholder={start.kind === 'live' ? 'channel-7' : 'rec-2026-11-14'}
            onInput={({ currentTarget }) => set({ ref: currentTarget.value })}
          />
        </label>
        {start.kind === 'vod' && (
          <label class="field">
            Start at second
            <input
              type="number"
              min={0}
              value={start.startMs / 1_000}
              onInput={({ currentTarget }) =>
                set({ startMs: Math.max(0, Math.round(currentTarget.valueAsNumber * 1_000) || 0) })
              }
            />
          </label>
        )}
        <label class="field">
          Profile
          <input
            value={start.profile}
            maxLength={128}
            placeholder="default"
            onInput={({ currentTarget }) => set({ profile: currentTarget.value })}
          />
        </label>
        <Action
          name="Start"
          scope="v3:write"
          disabled={start.ref.trim() === ''}
          effect={`Starts the ${what} ${start.ref} for the client ${asker.client}. If a session already runs it, Holdfast returns that session and starts nothing.`}
          cli={startCommand(start, asker)}
          run={async () => setAccepted(await sent(start, asker.client))}
        />
      </div>
      {accepted !== null && (
        <p role="status">
          {accepted.replayed ? 'Already started: ' : 'Accepted: '}
          <a href={hrefOf('sessions', accepted.sessionId)} title={accepted.sessionId}>
            {sessionLabel(accepted.sessionId)}
          </a>
        </p>
      )}
    </Panel>
  );
}

function sent({ kind, ref, profile, startMs }: Start, clientId: string): Promise<AcceptedIntent> {
  const common = { clientId, ...(profile !== '' && { profile }) };
  return kind === 'live'
    ? client.start({ serviceRef: ref, ...common })
    : client.startVod({ recordingId: ref, startMs, ...common });
}
