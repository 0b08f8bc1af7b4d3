/** Has a channel run, or a recording: what `holdfast intents start` does. */
import { useState } from 'preact/hooks';
import type { AcceptedIntent } from '../../../../src/client/messages.ts';
import { about, client } from '../../data/access.ts';
import { Action } from '../../parts/action.tsx';
import { Panel } from '../../parts/basics.tsx';
import { hrefOf } from '../../router.ts';
import { type Start, startCommand } from './commands.ts';

const NOTHING: Start = { kind: 'live', ref: '', profile: '', startMs: 0 };

export function StartForm() {
  const [start, setStart] = useState(NOTHING);
  const [accepted, setAccepted] = useState<AcceptedIntent | null>(null);
  const asker = { client: about.value?.tokenId ?? 'page', tenant: about.value?.tenant ?? null };
  const set = (change: Partial<Start>) => setStart({ ...start, ...change });
  const what = start.kind === 'live' ? 'channel' : 'recording';
  return (
    <Panel title="Start">
      <div class="work-filters">
        <label class="field">
          What
          <select
            value={start.kind}
            onChange={({ currentTarget: { value } }) =>
              set({ kind: value === 'vod' ? 'vod' : 'live' })
            }
          >
            <option value="live">a channel (live)</option>
            <option value="vod">a recording (vod)</option>
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
            From second
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
          effect={`Has the ${what} ${start.ref} run, for the client ${asker.client}. Where the same was started before and has not ended, that session is found, and nothing is started twice.`}
          cli={startCommand(start, asker)}
          run={async () => setAccepted(await sent(start, asker.client))}
        />
      </div>
      {accepted !== null && (
        <p role="status">
          {accepted.replayed ? 'It had been started: ' : 'Accepted: '}
          <a href={hrefOf('sessions', accepted.sessionId)}>session {accepted.sessionId}</a>
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
