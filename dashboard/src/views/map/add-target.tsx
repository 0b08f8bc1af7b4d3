/** A form that adds a target. */
import { useState } from 'preact/hooks';
import { client } from '../../data/access.ts';
import { shellWord } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';

export function AddTarget() {
  const [url, setUrl] = useState('https://example.com');
  const [id, setId] = useState('');
  const options = id === '' ? '' : ` --id ${shellWord(id)}`;
  return (
    <form class="add-target" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        URL to poll (http or https)
        <input
          type="url"
          value={url}
          onInput={({ currentTarget }) => setUrl(currentTarget.value)}
        />
      </label>
      <label class="field">
        Id (optional)
        <input
          value={id}
          maxLength={128}
          onInput={({ currentTarget }) => setId(currentTarget.value)}
        />
      </label>
      <Action
        name="Add target"
        effect={`One of the instances starts to poll ${url}.`}
        cli={`holdfast targets add ${shellWord(url)}${options}`}
        scope="v3:write"
        disabled={url === ''}
        run={() => client.addSession({ url, ...(id !== '' && { id }) })}
      />
    </form>
  );
}
