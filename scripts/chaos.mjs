// Kills instances of a fleet at random for a while, and looks at the target server's record: `--minutes 10`,
// `--store redis|sqlite`, `--seed 1` to repeat the choices of an earlier run.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    store: { type: 'string', default: 'redis' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const env = {
  ...process.env,
  CHAOS_MINUTES: values.minutes,
  CHAOS_STORE: values.store,
  CHAOS_SEED: values.seed,
};
const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const args = [vitest, 'run', '--config', 'vitest.slow.config.ts', 'chaos'];
const { status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' });
process.exitCode = status ?? 1;
