/** Sends a signal to a workflow: the one that it waits for, or any other. */
import { useState } from 'preact/hooks';
import type { WorkflowDetail } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { shellWord } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';

export function SendSignal({ workflow, onSent }: { workflow: WorkflowDetail; onSent(): void }) {
  const { id, run } = workflow;
  const awaited = run?.waits.find(({ kind }) => kind === 'signal')?.name ?? '';
  const [typed, setTyped] = useState<string | null>(null);
  const [json, setJson] = useState('');
  const name = typed ?? awaited;
  const value = parsed(json);
  const flag = json.trim() === '' ? '' : ` --value ${shellWord(json.trim())}`;
  return (
    <div class="signal-form">
      <label class="field">
        <span class="quiet small">Signal</span>
        <input
          value={name}
          placeholder="its name"
          maxLength={128}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
      <label class="field">
        <span class="quiet small">Value (JSON)</span>
        <input
          value={json}
          placeholder="null"
          aria-invalid={value === undefined}
          onInput={({ currentTarget }) => setJson(currentTarget.value)}
        />
      </label>
      <Action
        name="Send signal"
        scope="v3:write"
        effect={`The store keeps signal ${name || '…'} for ${id} until a line of its function waits for it. One line receives it, once.`}
        cli={`holdfast workflows signal ${shellWord(id)} ${shellWord(name || '…')}${flag}`}
        disabled={name === '' || value === undefined}
        run={async () => {
          await client.signalWorkflow(id, { name, value });
          setTyped(null);
          setJson('');
          onSent();
        }}
      />
      {value === undefined && (
        <p class="small bad" role="status">
          The value is not JSON. Put text in quotes: "yes".
        </p>
      )}
    </div>
  );
}

/** Null for nothing, undefined for what is not JSON. */
function parsed(json: string): unknown {
  if (json.trim() === '') return null;
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
