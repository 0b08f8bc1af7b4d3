/** Prometheus of Debian's package `prometheus`: its tool for rules, and a server of a test's own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit, killAtExit } from './process.ts';
import { freePort } from './redis-server.ts';
import { pathOf, requirePrograms, thisMachine } from './require-redis.ts';
import { until } from './until.ts';

const READY_DEADLINE_MS = 30_000;

/** Installs the package if that is ours to do. Throws with advice if it is not, and is missing. */
export function requirePrometheus(): void {
  if (pathOf('promtool', thisMachine.env.PATH) === undefined)
    requirePrograms(thisMachine, ['prometheus']);
}

/** Runs `promtool`; its output, and whether it was content. */
export function promtool(...args: readonly string[]): { isOk: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  return { isOk: status === 0, output: `${stdout}${stderr}` };
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface PrometheusServer extends AsyncDisposable {
  /** The samples of an expression, now. */
  query(expr: string): Promise<Sample[]>;
}

export interface PrometheusOptions {
  readonly job: string;
  /** `host:port` of each instance. */
  readonly instances: readonly string[];
  /** The path of a file of rules. */
  readonly rules: string;
}

/** Scrapes the instances every second, and evaluates the rules as often. */
export async function startPrometheus(options: PrometheusOptions): Promise<PrometheusServer> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-prometheus-'));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  const forget = atExit(remove);
  const config = join(dir, 'prometheus.yml');
  writeFileSync(config, configOf(options));
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=${address}`,
  ];
  const server = spawn('prometheus', args, { stdio: 'ignore' });
  killAtExit(server);
  const get = (path: string) => fetch(`http://${address}${path}`);
  const isReady = () =>
    get('/-/ready').then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady, { what: 'Prometheus to be ready', deadlineMs: READY_DEADLINE_MS });
  return {
    async query(expr) {
      const response = await get(`/api/v1/query?query=${encodeURIComponent(expr)}`);
      const answer = (await response.json()) as QueryAnswer;
      if (answer.status !== 'success') throw new Error(`${expr}: ${answer.error}`);
      return answer.data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    async [Symbol.asyncDispose]() {
      if (server.exitCode === null && server.signalCode === null) {
        const gone = once(server, 'exit');
        server.kill('SIGKILL');
        await gone;
      }
      forget();
      remove();
    },
  };
}

interface QueryAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly {
      readonly metric: Record<string, string>;
      readonly value: readonly [number, string];
    }[];
  };
}

/** JSON is YAML. */
function configOf({ job, instances, rules }: PrometheusOptions): string {
  return JSON.stringify({
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: [{ job_name: job, static_configs: [{ targets: instances }] }],
  });
}
