import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { createMetrics, type Metrics } from '../../src/server/index.ts';
import { privateFolder, type Running, startCli } from '../integration/support/cli.ts';
import { leaveNothingBehind, openAt } from '../integration/support/holdfasts.ts';
import {
  type PrometheusServer,
  requirePrometheus,
  startPrometheus,
} from '../support/prometheus.ts';
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts';
import { readSource } from '../support/source-tree.ts';
import { until } from '../support/until.ts';

leaveNothingBehind();

const JOB = 'fleet';
const TARGETS = 6;
const TTL_MS = 3_000;
const DEADLINE_MS = 45_000;
const RULES = fileURLToPath(new URL('../../docs/alerts/holdfast.rules.yml', import.meta.url));

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = JSON.parse(readSource('docs/grafana/holdfast.json').text) as {
  panels: readonly Panel[];
};

/** As Grafana fills in its variables, for scrapes a second apart. */
function filledIn(expr: string): string {
  return expr
    .replaceAll('$job', JOB)
    .replaceAll('$instance', '.+')
    .replaceAll('$__rate_interval', '1m');
}

const QUERIES = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: filledIn(expr) })),
);
/** Those that have data in trouble only. */
const isOfTrouble = ({ expr }: { expr: string }) => /holdfast_stalled/.test(expr);
const isOfFailover = ({ expr }: { expr: string }) => /gap_duration/.test(expr);
/** Those that have data once a target has moved. */
const isOfHandover = ({ expr }: { expr: string }) => /handover_duration/.test(expr);
const isUsual = (query: { expr: string }) =>
  !isOfTrouble(query) && !isOfFailover(query) && !isOfHandover(query);

/** `holdfast up`, on a port of its own. */
class Up {
  readonly port: number;
  readonly #config: string;
  #running: Running;

  private constructor(port: number, config: string) {
    this.port = port;
    this.#config = config;
    this.#running = this.#start();
  }

  static async start(config: string): Promise<Up> {
    return new Up(await freePort(), config);
  }

  #start(): Running {
    return startCli(['up', '--config', this.#config, '--port', String(this.port)]);
  }

  async isReady(): Promise<boolean> {
    const answer = fetch(`http://127.0.0.1:${this.port}/readyz`);
    return answer.then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** Stops it as a deployment does, and starts it again. */
  async restart(): Promise<void> {
    this.#running.signal('SIGTERM');
    const { code, stderr } = await this.#running.end();
    expect(code, stderr).toBe(0);
    this.#running = this.#start();
  }

  async kill(): Promise<void> {
    this.#running.signal('SIGKILL');
    await this.#running.end();
  }
}

describe('a fleet that Prometheus scrapes', () => {
  let redis: RedisServer;
  let holdfast: Holdfast;
  let metrics: Metrics;
  let prometheus: PrometheusServer;
  let ups: Up[] = [];
  const own = createServer((_, response) => {
    void metrics.text().then((text) => response.end(text));
  });

  beforeAll(async () => {
    requirePrometheus();
    redis = await startRedis();
    holdfast = await openAt(redis);
    metrics = createMetrics(holdfast);
    await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
    const config = writeConfig(redis.url);
    ups = await Promise.all([Up.start(config), Up.start(config), Up.start(config)]);
    const ports = [(own.address() as AddressInfo).port, ...ups.map(({ port }) => port)];
    const instances = ports.map((port) => `127.0.0.1:${port}`);
    prometheus = await startPrometheus({ job: JOB, instances, rules: RULES });
  }, 90_000);

  afterAll(async () => {
    await Promise.all(ups.map((up) => up.kill()));
    await prometheus?.[Symbol.asyncDispose]();
    await holdfast?.close();
    metrics?.close();
    own.close();
    own.closeAllConnections();
    await redis?.stop();
  });

  const areReady = async () => (await Promise.all(ups.map((up) => up.isReady()))).every(Boolean);
  const areOwned = async () => {
    const view = await holdfast.fleet.view();
    const owned = view.members.map((member) => member.owned);
    return owned.length === ups.length && owned.join() === ups.map(() => 2).join();
  };
  const firing = async () => {
    const alerts = await prometheus.query('ALERTS{alertstate="firing"}');
    return alerts.map(({ metric }) => `${metric.alertname} of ${metric.instance}`);
  };
  /** Queries whose samples are missing, or no numbers. */
  const without = async (queries: readonly { title: string; expr: string }[]) => {
    const answers = await Promise.all(queries.map(({ expr }) => prometheus.query(expr)));
    return queries.flatMap(({ title, expr }, i) =>
      answers[i]?.some(({ value }) => !Number.isNaN(value)) ? [] : [`${title}: ${expr}`],
    );
  };

  it('has data in every panel of the dashboard', async () => {
    await until(areReady, { what: 'three instances', deadlineMs: DEADLINE_MS });
    for (let i = 0; i < TARGETS; i++) await holdfast.targets.add({ id: `target-${i}` });
    await until(areOwned, { what: 'two targets each', deadlineMs: DEADLINE_MS });
    await using working = await work(holdfast);
    const usual = QUERIES.filter(isUsual);
    expect(usual.length).toBeGreaterThan(40);
    let missing: string[] = [];
    const isComplete = async () => {
      await working.next();
      missing = await without(usual);
      return missing.length === 0;
    };
    await until(isComplete, { what: 'all data', deadlineMs: DEADLINE_MS }).catch(() => {});
    expect(missing).toEqual([]);
  }, 120_000);

  it('fires no alert in a rolling restart', async () => {
    for (const up of ups) {
      await up.restart();
      await until(areReady, { what: 'three instances', deadlineMs: DEADLINE_MS });
      await until(areOwned, { what: 'two targets each', deadlineMs: DEADLINE_MS });
      expect(await firing()).toEqual([]);
    }
    const scraped = async () =>
      (await prometheus.query(`sum(up{job="${JOB}"})`))[0]?.value === ups.length + 1;
    await until(scraped, { what: 'scrapes of all', deadlineMs: DEADLINE_MS });
    expect(await firing()).toEqual([]);
    expect(await without(QUERIES.filter(isOfHandover))).toEqual([]);
  }, 120_000);

  it('shows the gap after a crash, and warns when the store is down', async () => {
    await ups[0]?.kill();
    const failover = QUERIES.filter(isOfFailover);
    const hasGap = async () => (await without(failover)).length === 0;
    await until(hasGap, { what: 'a gap', deadlineMs: DEADLINE_MS });
    await redis.kill();
    const trouble = QUERIES.filter(isOfTrouble);
    const isShown = async () => (await without(trouble)).length === 0;
    await until(isShown, { what: 'a stalled part', deadlineMs: DEADLINE_MS });
    // It fires after half a minute, which the tests of the rules show.
    const isPending = async () =>
      (await prometheus.query('ALERTS{alertname="HoldfastStoreAway"}')).length > 0;
    await until(isPending, { what: 'the alert', deadlineMs: DEADLINE_MS });
    await redis.restart();
  }, 120_000);
});

function writeConfig(url: string): string {
  const path = join(privateFolder(), 'holdfast.config.mjs');
  writeFileSync(
    path,
    `export default {
  store: '${url}',
  quarantine: 'off',
  ttl: ${TTL_MS},
  every: 200,
  poll: async () => ({ celsius: 20 }),
  resources: { tuners: 2 },
  pipelines: { live: { command: ['sleep', '0.3'] } },
  api: { metrics: 'open' },
};
`,
  );
  return path;
}

/** A workflow and sessions; each step of it makes numbers for some panels. */
async function work(holdfast: Holdfast) {
  const processor = holdfast.processor({
    name: 'press',
    role: 'effect',
    handlers: { PRINT: () => 'printed' },
  });
  await processor.start();
  const order = await holdfast.workflows.claim('order');
  const intents = holdfast.intents();
  let count = 0;
  return {
    async next() {
      count += 1;
      await order.emit('PRINT', count, { target: 'press' });
      const intent = { type: 'stream.start' as const, serviceRef: `channel-${count}` };
      await intents.submit(intent, { tenant: null, client: 'test' });
    },
    async [Symbol.asyncDispose]() {
      await processor.stop();
      await order.release();
    },
  };
}
