/** The rules of `holdfast up --processes`, for the first process and for those that it starts. */
import cluster from 'node:cluster';
import type { HoldfastConfig } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';
import { rolesOf } from './roles.ts';
import type { UpServer } from './up-server.ts';

/** Tells a process which of those that share the port it is: `1` and up. */
export const PROCESS_VARIABLE = 'HOLDFAST_PROCESS';

/** Which of the processes that share a port this one is; null: it is not one of them. */
export function ownProcess(): string | null {
  return cluster.isWorker ? (process.env[PROCESS_VARIABLE] ?? null) : null;
}

/** Checks what only several processes need. */
export function checkProcesses({ roles, api }: HoldfastConfig, door: UpServer | null): void {
  const refuse = (rule: string) =>
    new ConfigError({ field: 'api.processes', value: api?.processes, rule });
  const others = [...rolesOf(roles)].filter((role) => role !== 'api');
  if (others.length > 0)
    throw refuse(
      'only the role api can run in more than one process. Add --roles api, and run the other roles with another holdfast up',
    );
  if (door !== null && door.madeToken !== null)
    throw refuse('these processes need a token that all of them know. Set HOLDFAST_API_TOKEN');
}
