import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/until.ts';
import { type CliOptions, privateFolder, type Running, startCli } from './cli.ts';

/** One line of what `holdfast up` says, elsewhere than on a terminal. */
export interface Entry {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly instance?: string;
  readonly event?: string;
  readonly [fact: string]: unknown;
}

/** A `holdfast up` that runs. */
export class UpInstance {
  readonly running: Running;

  constructor(running: Running) {
    this.running = running;
  }

  /** What it has said so far. */
  get log(): Entry[] {
    const lines = this.running.stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Entry);
  }

  get id(): string {
    return this.log.find(({ instance }) => instance !== undefined)?.instance ?? '';
  }

  /** Waits until it has said something like this. */
  says(msg: RegExp, deadlineMs = 10_000): Promise<Entry> {
    const found = () => this.log.find((entry) => msg.test(entry.msg));
    return until(found, { what: `an instance to say ${msg}`, deadlineMs });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.running[Symbol.asyncDispose]();
  }
}

/**
 * Starts one instance, which only polls unless its `roles` say otherwise. Its `config` is the text of an object; leases last 3 s and targets are
 * polled often unless it says otherwise.
 */
export function startUp(
  name: string,
  options: CliOptions & { config?: string; args?: readonly string[]; roles?: string } = {},
): UpInstance {
  const { config = '', roles = 'poller', ...rest } = options;
  const { args: more = [], ...cliOptions } = rest;
  const args = ['--roles', roles, ...more];
  const path = join(privateFolder(), 'holdfast.config.mjs');
  const text = `export default { ttl: '3s', every: '200ms', discovery: 'off', ${config} };`;
  writeFileSync(path, text);
  return new UpInstance(startCli(['up', '--name', name, '--config', path, ...args], cliOptions));
}
