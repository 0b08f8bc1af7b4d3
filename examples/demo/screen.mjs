/** Who polls what, live: a block that is drawn anew on a terminal, a line for every change elsewhere. */
import { setTimeout } from 'node:timers/promises';
import { shortName } from './stations.mjs';

const EVERY_MS = 400;
/** Lines above the block that tell what happened. */
const GATHER_MS = 500;
const hasTerminal = process.stdout.isTTY === true;
const hasColour = hasTerminal && !process.env.NO_COLOR;

const paint = (code, text) => (hasColour ? `\x1b[${code}m${text}\x1b[0m` : text);

export class Screen {
  #holdfast;
  #name;
  #over = new AbortController();
  #lines = 0;
  #split = '';
  #moves = new Map();
  #working = [];

  constructor(holdfast, name) {
    this.#holdfast = holdfast;
    this.#name = name;
  }

  start() {
    this.#working = [this.#draw(), this.#follow()];
  }

  async stop() {
    this.#over.abort();
    await Promise.all(this.#working);
  }

  /** One line, above the block. */
  tell(text) {
    this.#erase();
    console.log(`${paint(2, new Date().toTimeString().slice(0, 8))}  ${text}`);
  }

  async #draw() {
    while (!this.#over.signal.aborted) {
      // While the store does not answer, the last picture stays.
      const view = await this.#holdfast.fleet.view().catch(() => null);
      this.#tellMoves();
      if (view !== null && !this.#over.signal.aborted) this.#show(view);
      await this.#sleep(EVERY_MS);
    }
    this.#erase();
  }

  #show({ members, targets }) {
    const rows = members.map((member) => {
      const owned = targets.filter(({ owner }) => owner === member.id).map(({ target }) => target);
      return { name: shortName(member), owned: owned.map((id) => id.replace(/^demo-/, '')) };
    });
    if (!hasTerminal) {
      const split = rows.map(({ name, owned }) => `${name} ${owned.length}`).join(' · ');
      if (split !== this.#split) this.tell(split);
      this.#split = split;
      return;
    }
    const width = Math.max(...rows.map(({ name }) => name.length), 4);
    const columns = process.stdout.columns || 80;
    const lines = rows.map(({ name, owned }) => {
      const bar = '█'.repeat(owned.length).padEnd(targets.length);
      const mark = name === this.#name ? '>' : ' ';
      const text = `${String(owned.length).padStart(3)}  ${owned.join(' ')}`;
      const room = columns - width - bar.length - 5;
      const label = paint(36, `${mark} ${name.padEnd(width)}`);
      return `${label} ${paint(32, bar)} ${text.slice(0, Math.max(4, room))}`;
    });
    this.#erase();
    process.stdout.write(`${lines.join('\n')}\n`);
    this.#lines = lines.length;
  }

  #erase() {
    if (this.#lines > 0) process.stdout.write(`\x1b[${this.#lines}A\x1b[J`);
    this.#lines = 0;
  }

  /** What happens to all instances, from the log they share. */
  async #follow() {
    const { signal } = this.#over;
    for await (const { kind, event } of this.#holdfast.log.follow({ signal })) {
      if (kind !== 'event') continue;
      const who = shortName(event.instance);
      if (event.event === 'member.joined') this.#note(`${who} joins`);
      else if (event.event === 'member.left' && event.reason === 'left')
        this.#note(`${who} has left`);
      else if (event.event === 'member.left') this.#note(`${shortName(event.member)} is dead`);
      else if (event.leaseClass !== 'poll') continue;
      else if (event.event === 'lease.transferred')
        this.#note(`${who} → ${shortName(event.successor)}:`, event.key);
      else if (event.event === 'lease.lost') this.#note(`${who} has lost`, event.key);
    }
  }

  /** Told when nothing more of its kind comes for a moment: a dozen stations that move are one line. */
  #note(text, target) {
    const known = this.#moves.get(text) ?? { targets: new Set(), atMs: performance.now() };
    if (target !== undefined) known.targets.add(target.replace(/^demo-/, ''));
    this.#moves.set(text, known);
  }

  #tellMoves() {
    for (const [text, { targets, atMs }] of this.#moves) {
      if (performance.now() - atMs < GATHER_MS && !this.#over.signal.aborted) continue;
      this.#moves.delete(text);
      this.tell([text, ...targets].join(' '));
    }
  }

  /** Also ends when the demo does. */
  async #sleep(ms) {
    await setTimeout(ms, undefined, { signal: this.#over.signal }).catch(() => {});
  }
}
