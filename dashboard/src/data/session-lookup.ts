/** Asks for the names of sessions that are shown and not known yet, a few at a time, each once. */
import { client } from './access.ts';
import { isSessionId, nameOfSession, namesVersion, rememberSessions } from './session-names.ts';

const AT_ONCE = 4;

const asked = new Set<string>();
const waiting: string[] = [];
let underWay = 0;

/** What a session runs; the start of its id until that is known, and if the session is gone. */
export function sessionLabel(id: string): string {
  namesVersion.value;
  const name = nameOfSession(id);
  if (name !== undefined) return name;
  wantName(id);
  return isSessionId(id) ? id.slice(0, 8) : id;
}

export function wantName(id: unknown): void {
  if (typeof id !== 'string' || !isSessionId(id) || asked.has(id)) return;
  if (nameOfSession(id) !== undefined) return;
  asked.add(id);
  waiting.push(id);
  askNext();
}

function askNext(): void {
  while (underWay < AT_ONCE && waiting.length > 0) {
    underWay++;
    void ask(waiting.pop() ?? '');
  }
}

async function ask(id: string): Promise<void> {
  // A session that is gone, or a server that does not answer: the id stays what is shown.
  const session = await client.session(id).catch(() => null);
  rememberSessions([session]);
  underWay--;
  askNext();
}
