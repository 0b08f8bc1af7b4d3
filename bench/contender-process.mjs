import { TaskProcess } from './task-process.mjs';

/** A contender in a process of its own, and the tasks it is given there; `child.mjs` is the other side. */
export class ContenderProcess extends TaskProcess {
  constructor({ name, client }, url) {
    super(name, './child.mjs', [name, client, url]);
    this.client = client;
  }
}
