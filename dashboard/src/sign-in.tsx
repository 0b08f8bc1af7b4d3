import { useState } from 'preact/hooks';
import { access, signIn } from './data/access.ts';

/** For those who are not known yet. */
export function SignIn() {
  const [token, setToken] = useState('');
  const [remember, setRemember] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const why = access.value.kind === 'out' ? access.value.why : null;
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await signIn(token, remember);
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form class="panel" onSubmit={submit}>
        <h1>Holdfast</h1>
        <p class="quiet">
          Paste a token. Where none is configured, <code>holdfast up</code> has made one and shows
          it in its terminal, with an address that needs no typing.
        </p>
        <label class="field">
          Token
          <input
            type="password"
            autocomplete="off"
            required
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={remember}
            onChange={({ currentTarget }) => setRemember(currentTarget.checked)}
          />
          Remember it on this device
        </label>
        {why !== null && (
          <p class="notice bad" role="alert">
            {why}
          </p>
        )}
        <button type="submit" class="main-action" disabled={isBusy}>
          {isBusy ? 'Asking …' : 'Look'}
        </button>
      </form>
    </main>
  );
}
