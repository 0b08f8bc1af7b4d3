/**
 * A button that changes something. It opens a dialog that says what will happen and which command does the same; on confirmation it acts, and
 * says what failed. If the token does not allow the action, the button is disabled and its tooltip says why.
 */
import { useRef, useState } from 'preact/hooks';
import { may, messageOf } from '../data/access.ts';
import { shellWord } from '../data/words.ts';
import { AsCli } from './as-cli.tsx';

export interface ActionProps {
  readonly name: string;
  /** What it does, and to what. The dialog and the tooltip say it. */
  readonly effect: string;
  /** The command that does the same; `'…'` in it stands for the reason. */
  readonly cli: string;
  readonly scope: 'v3:write' | 'v3:admin';
  readonly danger?: boolean;
  /** Whether the dialog asks for a reason, which goes into the log. */
  readonly reason?: 'required' | 'optional';
  readonly disabled?: boolean;
  run(reason: string): Promise<unknown>;
}

export function Action({
  name,
  effect,
  cli,
  scope,
  danger = false,
  reason,
  disabled = false,
  run,
}: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [why, setWhy] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const isAllowed = may(scope);
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      await run(why.trim());
      dialog.current?.close();
      setWhy('');
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const open = () => {
    setFailure(null);
    dialog.current?.showModal();
  };
  return (
    <>
      <button
        type="button"
        class={danger ? 'danger' : ''}
        disabled={!isAllowed || disabled}
        title={isAllowed ? effect : `You need a token with the scope ${scope}.`}
        onClick={open}
      >
        {name} …
      </button>
      <dialog ref={dialog} aria-label={name}>
        <form onSubmit={act}>
          <h2>{name}</h2>
          <p>{effect}</p>
          {reason !== undefined && (
            <label class="field">
              Reason{reason === 'optional' && ' (optional)'}
              <input
                value={why}
                required={reason === 'required'}
                maxLength={512}
                onInput={({ currentTarget }) => setWhy(currentTarget.value)}
              />
            </label>
          )}
          <AsCli command={why.trim() === '' ? cli : cli.replace("'…'", shellWord(why.trim()))} />
          {failure !== null && (
            <p class="notice bad" role="alert">
              {failure}
            </p>
          )}
          <div class="buttons end">
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button type="submit" class={danger ? 'danger' : 'main-action'} disabled={isBusy}>
              {isBusy ? 'Sending …' : name}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
