const HOOK = new URL('../../children/fault-after-spawn.mjs', import.meta.url).href;

/** The environment in which supervisors get this signal when they have started a command, and have not yet said so. */
export function faultAfterSpawn(signal: 'SIGKILL' | 'SIGSTOP'): Record<string, string> {
  return { NODE_OPTIONS: `--import ${HOOK}`, AFTER_SPAWN: signal };
}
