import { connect } from 'node:net';
import { within } from './until.ts';

/** What Redis answers in RESP2. Errors are thrown, or stand as `Error` inside arrays. */
export type Reply = string | number | null | Error | Reply[];

/** Who one is to Redis; without a name, the default user. */
export interface Credentials {
  username?: string;
  password: string;
}

/** Sends one command over a connection of its own. Independent of the client library under test. */
export async function call(
  port: number,
  args: readonly (string | number)[],
  deadlineMs: number,
  credentials?: Credentials,
  host = '127.0.0.1',
): Promise<Reply> {
  const commands = credentials === undefined ? [args] : [authentication(credentials), args];
  const socket = connect({ port, host, noDelay: true });
  const answer = new Promise<Reply[]>((resolve, reject) => {
    let received = Buffer.alloc(0);
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('connection closed before the reply')));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const parsed = parseSequence(received, 0, commands.length);
      if (parsed !== undefined) resolve(parsed.reply);
    });
    socket.write(commands.map(encode).join(''));
  });
  try {
    const replies = await within(deadlineMs, answer);
    const refusal = replies.find((reply) => reply instanceof Error);
    if (refusal !== undefined) throw refusal;
    return replies.at(-1) ?? null;
  } catch (error) {
    throw new Error(`redis on port ${port}: ${args.join(' ')}: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    socket.destroy();
  }
}

function authentication({ username, password }: Credentials): string[] {
  return username === undefined ? ['AUTH', password] : ['AUTH', username, password];
}

function encode(args: readonly (string | number)[]): string {
  const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
  return `*${args.length}\r\n${parts.join('')}`;
}

/** The reply that begins at `at` and where the next one begins; undefined while bytes are missing. */
function parse(bytes: Buffer, at: number): { reply: Reply; next: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd === -1) return undefined;
  const kind = bytes.toString('latin1', at, at + 1);
  const line = bytes.toString('utf8', at + 1, lineEnd);
  const next = lineEnd + 2;
  if (kind === '+') return { reply: line, next };
  if (kind === '-') return { reply: new Error(line), next };
  if (kind === ':') return { reply: Number(line), next };
  if (kind === '$') return parseBulk(bytes, next, Number(line));
  if (kind === '*') return parseArray(bytes, next, Number(line));
  throw new Error(`not RESP2: ${JSON.stringify(kind + line)}`);
}

function parseBulk(bytes: Buffer, at: number, length: number) {
  if (length === -1) return { reply: null, next: at };
  if (bytes.length < at + length + 2) return undefined;
  return { reply: bytes.toString('utf8', at, at + length), next: at + length + 2 };
}

function parseArray(bytes: Buffer, at: number, length: number) {
  if (length === -1) return { reply: null, next: at };
  return parseSequence(bytes, at, length);
}

function parseSequence(bytes: Buffer, at: number, length: number) {
  const reply: Reply[] = [];
  let next = at;
  for (let index = 0; index < length; index += 1) {
    const element = parse(bytes, next);
    if (element === undefined) return undefined;
    reply.push(element.reply);
    next = element.next;
  }
  return { reply, next };
}
