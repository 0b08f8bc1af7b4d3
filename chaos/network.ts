/**
 * The networks of a run in namespaces. Each server and each instance has a namespace of its own, and all meet on a bridge
 * in the namespace of the harness. Instances have a second interface, on the bridge of the judges: sink and target servers.
 * Faults act where the first bridge forwards. So the harness, which is an end of both, reaches everything at all times.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Home } from '../test/support/home.ts';
import { addressOf, HARNESS, JUDGE_NET, STORE_NET, tableOf, withPrefix } from './network-rules.ts';

const BRIDGES = { store: STORE_NET, judge: JUDGE_NET } as const;
type Bridge = keyof typeof BRIDGES;
/** Without one of its own, a bridge changes its MAC as ports come and go, and nobody reaches it for a while. */
const BRIDGE_MAC = '02:00:00:00:00:01';

/** A link this slow has a queue of packets most of the time. */
const SLOW = ['rate', '24kbit', 'burst', '2000', 'latency', '700ms'];

export class Network {
  /** Where sink and target servers listen. */
  readonly judgeAddress = addressOf(JUDGE_NET, HARNESS);
  #homes = HARNESS;
  #faults = 0;

  private constructor() {}

  static async start(): Promise<Network> {
    const bridges = Object.entries(BRIDGES).flatMap(([bridge, net]) => [
      `link add ${bridge} address ${BRIDGE_MAC} type bridge`,
      `address add ${withPrefix(addressOf(net, HARNESS))} dev ${bridge}`,
      `link set ${bridge} up`,
    ]);
    await ip([], ['link set lo up', ...bridges]);
    return new Network();
  }

  server(): Promise<Home> {
    return this.#home('server', ['store']);
  }

  instance(): Promise<Home> {
    return this.#home('instance', ['store', 'judge']);
  }

  /** It is gone with its interfaces when its last process is. */
  async remove({ name }: Home): Promise<void> {
    await run('ip', ['netns', 'delete', name]);
  }

  /** Packets are treated by these rules meanwhile. */
  async under(rules: readonly string[], meanwhile: () => Promise<void>): Promise<void> {
    this.#faults += 1;
    const name = `fault${this.#faults}`;
    await run('nft', ['-f', '-'], tableOf(name, rules));
    try {
      await meanwhile();
    } finally {
      await run('nft', ['delete', 'table', 'bridge', name]);
    }
  }

  /** Packets from it and to it wait meanwhile, and those that find the queue full are lost. */
  async slowed({ name }: Home, meanwhile: () => Promise<void>): Promise<void> {
    const from = ['dev', 'store', 'root'];
    const to = ['dev', nearEnd(name, 'store'), 'root'];
    await run('tc', ['-n', name, 'qdisc', 'add', ...from, 'tbf', ...SLOW]);
    await run('tc', ['qdisc', 'add', ...to, 'tbf', ...SLOW]);
    try {
      await meanwhile();
    } finally {
      await run('tc', ['-n', name, 'qdisc', 'delete', ...from]);
      await run('tc', ['qdisc', 'delete', ...to]);
    }
  }

  async #home(kind: string, bridges: readonly Bridge[]): Promise<Home> {
    this.#homes += 1;
    const number = this.#homes;
    const name = `${kind}${number}`;
    await run('ip', ['netns', 'add', name]);
    const here = bridges.flatMap((bridge) => [
      `link add ${nearEnd(name, bridge)} type veth peer name ${bridge} netns ${name}`,
      `link set ${nearEnd(name, bridge)} master ${bridge} up`,
    ]);
    const there = bridges.flatMap((bridge) => [
      `address add ${withPrefix(addressOf(BRIDGES[bridge], number))} dev ${bridge}`,
      `link set ${bridge} up`,
    ]);
    await ip([], here);
    await ip(['-n', name], ['link set lo up', ...there]);
    const enter = ['nsenter', `--net=/run/netns/${name}`];
    return { name, address: addressOf(STORE_NET, number), enter };
  }
}

/** The end that is in the namespace of the harness. */
function nearEnd(name: string, bridge: Bridge): string {
  return `${name}${bridge[0]}`;
}

async function ip(options: readonly string[], lines: readonly string[]): Promise<void> {
  await run('ip', [...options, '-batch', '-'], `${lines.join('\n')}\n`);
}

async function run(program: string, args: readonly string[], input = ''): Promise<void> {
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.on('error', () => {}).end(input);
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} failed (${code}): ${said}${input}`);
}
