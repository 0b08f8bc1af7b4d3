/** The service as a process of its own, and its answers. */
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Player } from '../staging/player.mjs';

const APP = fileURLToPath(new URL('app.mjs', import.meta.url));

export class Instance extends Player {
  url = '';

  constructor(name, env) {
    super(APP, name, { ...env, PORT: '0' }, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  }

  /** It says where, once it does. */
  async listens() {
    for await (const line of createInterface({ input: this.stdout })) {
      this.url = line.split(' ').at(-1);
      return;
    }
    throw new Error(`${this.name} has ended before it listened`);
  }

  async call(method, path, body) {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** As whoever runs it stops it; its exit code. */
  stop() {
    this.signal('SIGTERM');
    return this.ended();
  }
}
