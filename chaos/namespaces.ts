/**
 * Runs the command again in namespaces of its own: of networks, mounts and processes. Nothing of them is visible outside,
 * and when the first process in there ends, however that happens, the kernel ends all others and takes the networks away.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { install, pathOf, thisMachine } from '../test/support/require-redis.ts';

/** Debian's packages, by the programs that a run starts. */
const PACKAGES = { ip: 'iproute2', tc: 'iproute2', nft: 'nftables' };
const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
const INSIDE = 'HOLDFAST_CHAOS_NAMESPACES';

/** `--kill-child` and `--pdeathsig`: neither this process nor `unshare` can die and leave the rest. */
const UNSHARE = 'unshare --net --mount --pid --fork --kill-child --mount-proc';
const ENTER = `setpriv --pdeathsig KILL ${UNSHARE}`.split(' ');
/** `ip netns` keeps its namespaces below /run. The shell stays, and reaps what patroni leaves. */
const PREPARE = 'mount -t tmpfs none /run && "$0" "$@"; exit $?';
/** Everything that a run needs of the kernel, tried once. */
const PROBE = [
  'ip netns add probe',
  'ip link add probe type bridge',
  'ip link add near type veth peer name far netns probe',
  'nft "add table bridge probe; add chain bridge probe c { type filter hook forward priority 0; }"',
  'nft add rule bridge probe c ip length 1 numgen random mod 2 == 0 drop',
  'tc qdisc add dev near root tbf rate 1mbit burst 2000 latency 1ms',
].join(' && ');

export function isInNamespaces(): boolean {
  return process.env[INSIDE] === '1';
}

/** Why there can be no namespaces; null where there can. Installs what is missing, as root. */
export function namespacesMissing(): string | null {
  if (process.platform !== 'linux') return 'network namespaces exist on Linux only';
  if (!thisMachine.isRoot) return 'network namespaces need root';
  const absent = Object.entries(PACKAGES).filter(([name]) => pathOf(name, PATH) === undefined);
  const packages = [...new Set(absent.map(([, name]) => name))];
  if (packages.length > 0 && pathOf('apt-get', PATH) === undefined)
    return `not installed: ${packages.join(', ')}`;
  if (packages.length > 0) {
    thisMachine.say(`not installed: ${packages.join(', ')}; installing with apt-get …`);
    install(thisMachine, packages);
  }
  const [program = '', ...args] = inside(['sh', '-c', PROBE]);
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env: env() });
  if (status === 0) return null;
  return error?.message ?? String(stderr).trim().split('\n')[0] ?? 'the kernel refused';
}

/** The exit code is that of the command. Signals to this process reach the whole run. */
export async function runInNamespaces(command: readonly string[]): Promise<number> {
  const [program = '', ...args] = inside(command);
  const child = spawn(program, args, { stdio: 'inherit', env: env(), detached: true });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, () => passOn(child, signal));
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

function inside(command: readonly string[]): string[] {
  return [...ENTER, 'sh', '-c', PREPARE, ...command];
}

function env(): NodeJS.ProcessEnv {
  return { ...process.env, PATH, [INSIDE]: '1' };
}

function passOn({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(-pid, signal);
}
