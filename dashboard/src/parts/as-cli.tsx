import { useState } from 'preact/hooks';

const SHOWN_MS = 1_500;

/** The command that does the same, ready to copy. */
export function AsCli({ command }: { command: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(command);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <div class="as-cli">
      <span class="visually-hidden">Command: </span>
      <code>{command}</code>
      <button type="button" class="plain" onClick={copy}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}
