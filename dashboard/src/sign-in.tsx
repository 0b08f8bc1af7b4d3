import { useState } from 'preact/hooks';
import { access, signIn } from './data/access.ts';

/** Asks for a token. */
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
          Paste your token. If you have configured none, <code>holdfast up</code> has made one: its
          terminal shows the token, and an address that signs you in.
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
          Keep me signed in on this device
        </label>
        {why !== null && (
          <p class="notice bad" role="alert">
            {why}
          </p>
        )}
        <button type="submit" class="main-action" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
