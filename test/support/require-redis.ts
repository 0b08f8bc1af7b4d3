import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL_DEADLINE_MS = 300_000;

/** What the integration tests start, beside Node: each is in the Debian package of the same name. */
const PROGRAMS = ['redis-server', 'openssl', 'ffmpeg'];

/** What decides whether, and how, programs may be installed here. */
export interface Machine {
  env: Readonly<Record<string, string | undefined>>;
  isRoot: boolean;
  say: (line: string) => void;
  /** Debian asks this program whether a freshly installed service may start. */
  policyFile: string;
}

/** Vitest calls this once, before the first integration test. */
export default function setup(): void {
  requireRedis({
    env: process.env,
    isRoot: process.getuid?.() === 0,
    say: (line) => process.stderr.write(`${line}\n`),
    policyFile: '/usr/sbin/policy-rc.d',
  });
}

/** Makes sure that the programs can be started, installing them where that is ours to do: as root, or in CI. */
export function requireRedis(machine: Machine): void {
  const { env, isRoot, say } = machine;
  const isOurs = isRoot || Boolean(env.CI);
  const missing = () => PROGRAMS.filter((program) => !isOnPath(program, env.PATH));
  const before = missing();
  if (before.length === 0) return;
  if (!isOurs || !isOnPath('apt-get', env.PATH)) throw new Error(advice(before));
  say(`not installed: ${before.join(', ')}; installing with apt-get …`);
  install(machine, before);
  if (missing().length > 0) throw new Error(advice(missing()));
}

function advice(missing: readonly string[]): string {
  const names = missing.join(' ');
  return (
    `The integration tests need ${missing.join(' and ')} on the PATH: install it (Debian and Ubuntu: ` +
    `\`apt-get install ${names}\`, macOS: \`brew install redis openssl ffmpeg\`), or run \`npm run test:unit\`.`
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

function install({ env, isRoot, policyFile }: Machine, packages: readonly string[]): void {
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

function isOnPath(program: string, path = ''): boolean {
  return path.split(delimiter).some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
