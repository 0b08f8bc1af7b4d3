import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL_DEADLINE_MS = 300_000;

/** What the integration tests start, beside Node: each is in the Debian package of the same name. */
const FOR_INTEGRATION = ['redis-server', 'openssl', 'ffmpeg', 'tmux'];

/** What decides whether, and how, programs may be installed here. */
export interface Machine {
  env: Readonly<Record<string, string | undefined>>;
  isRoot: boolean;
  say: (line: string) => void;
  /** Debian asks this program whether a freshly installed service may start. */
  policyFile: string;
}

export const thisMachine: Machine = {
  env: process.env,
  isRoot: process.getuid?.() === 0,
  say: (line) => process.stderr.write(`${line}\n`),
  policyFile: '/usr/sbin/policy-rc.d',
};

/** Vitest calls this once, before the first integration test. */
export default function setup(): void {
  requirePrograms(thisMachine);
}

/** Makes sure that the programs can be started, installing them where that is ours to do: as root, or in CI. */
export function requirePrograms(machine: Machine, programs = FOR_INTEGRATION): void {
  const { env, isRoot, say } = machine;
  const isOurs = isRoot || Boolean(env.CI);
  const missing = () => programs.filter((program) => pathOf(program, env.PATH) === undefined);
  const before = missing();
  if (before.length === 0) return;
  if (!isOurs || pathOf('apt-get', env.PATH) === undefined) throw new Error(advice(before));
  say(`not installed: ${before.join(', ')}; installing with apt-get …`);
  install(machine, before);
  if (missing().length > 0) throw new Error(advice(missing()));
}

function advice(missing: readonly string[]): string {
  const names = missing.join(' ');
  return (
    `The integration tests need ${missing.join(' and ')} on the PATH: install it (Debian and Ubuntu: ` +
    `\`apt-get install ${names}\`, macOS: \`brew install redis openssl ffmpeg tmux\`), or run \`npm run test:unit\`.`
  );
}

// Debian starts the service it installs, on the very port a developer's own Redis may have. Saying "not allowed" keeps
// it from starting; an answer that the machine's owner gave already is left as it is.
const INSTALL = `
set -e
if [ ! -e "$POLICY_FILE" ]; then
  trap 'rm -f "$POLICY_FILE"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > "$POLICY_FILE"
  chmod 755 "$POLICY_FILE"
fi
apt-get -o DPkg::Lock::Timeout=120 update
apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $PACKAGES
`;

export function install({ env, isRoot, policyFile }: Machine, packages: readonly string[]): void {
  const settings = {
    DEBIAN_FRONTEND: 'noninteractive',
    POLICY_FILE: policyFile,
    PACKAGES: packages.join(' '),
  };
  const assignments = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const [command = '', ...args] = [
    ...(isRoot ? [] : ['sudo', '-n']),
    ...['env', ...assignments, 'sh', '-c', INSTALL],
  ];
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    env: { ...env },
    encoding: 'utf8',
    timeout: INSTALL_DEADLINE_MS,
  });
  if (status === 0) return;
  const output = error?.message ?? `${stdout}${stderr}`.trim().split('\n').slice(-10).join('\n');
  throw new Error(`installing ${packages.join(', ')} failed. ${advice(packages)}\n${output}`);
}

/** Where a program is; undefined where it is not on the path. */
export function pathOf(program: string, path = ''): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
