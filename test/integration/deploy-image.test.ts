import { spawn, spawnSync } from 'node:child_process';
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packedPackage, ROOT } from '../support/packed-package.ts';
import { freePort, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { privateFolder, Running } from './support/cli.ts';
import {
  buildStages,
  configOf,
  instructionsOf,
  placeIn,
  type Stage,
} from './support/dockerfile.ts';
import { readDeploy } from './support/manifests.ts';
import { PackageRegistry } from './support/package-registry.ts';

/** Packs and installs, on a machine that does something else, too. */
const SLOW = { timeout: 180_000 };
const START_MS = 60_000;
/** The user `node` of Node's own images. */
const NODE_USER = 1_000;

const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
};
const instructions = instructionsOf(readDeploy('Dockerfile'));
const config = configOf(instructions);

describe('the image (examples/deploy/Dockerfile)', () => {
  let stages: Stage[] = [];
  let asked: readonly string[] = [];
  const image = () => {
    const last = stages.at(-1);
    if (last === undefined) throw new Error('there is no stage');
    return last;
  };

  beforeAll(async () => {
    const context = privateFolder();
    const { tarball } = packedPackage();
    cpSync(tarball, join(context, basename(tarball)));
    await using registry = await PackageRegistry.start(Object.keys(dependencies));
    const env = { npm_config_registry: registry.url, npm_config_cache: join(context, 'cache') };
    stages = await buildStages(instructions, { context, env });
    asked = registry.asked;
  }, SLOW.timeout);
  afterAll(() => {
    for (const { root } of stages) rmSync(root, { recursive: true, force: true });
  });

  it('is made in two stages, and has the package, what it depends on, and nothing else', () => {
    expect(stages.map((stage) => stage.image)).toEqual(['node:22-slim', 'node:22-slim']);
    const installed = readdirSync(placeIn(image(), '/opt/holdfast/node_modules'));
    expect(installed.filter((name) => !name.startsWith('.')).sort()).toEqual([
      ...['@hono', 'holdfast', 'hono', 'zod'],
    ]);
    expect(readdirSync(placeIn(image(), '/opt/holdfast'))).not.toContain(
      basename(packedPackage().tarball),
    );
    expect(asked).toContain('hono');
    expect(lstatSync(placeIn(image(), '/usr/local/bin/holdfast')).isSymbolicLink()).toBe(true);
  });

  it(
    'runs as the user of Node, is healthy when it serves, and ends with 0 on SIGTERM',
    SLOW,
    async () => {
      expect(config.user).toBe('node');
      await using redis = await startRedis();
      const port = String(await freePort());
      const own = (words: readonly string[]) =>
        words.map((word) => word.replaceAll('4747', port).replace('0.0.0.0', '127.0.0.1'));
      const isHealthy = () => {
        const [program = '', ...args] = own(config.healthcheck);
        return spawnSync(program, args, { env: { PATH: process.env.PATH } }).status === 0;
      };
      expect(isHealthy()).toBe(false);
      const [program = '', ...args] = [...config.entrypoint, ...own(config.cmd)];
      const cwd = placeIn(image(), config.workdir);
      mkdirSync(cwd, { recursive: true });
      const path = `${placeIn(image(), '/usr/local/bin')}:${process.env.PATH}`;
      const child = spawn(join(placeIn(image(), '/usr/local/bin'), program), args, {
        cwd,
        env: {
          ...image().env,
          PATH: path,
          HOLDFAST_STORE: redis.url,
          HOLDFAST_QUARANTINE: 'off',
          HOLDFAST_API_TOKEN: 'c0b106613e99154f15a8f88aa60e8d42',
        },
        stdio: 'pipe',
        ...(process.getuid?.() === 0 && { uid: NODE_USER, gid: NODE_USER }),
      });
      await using running = new Running(child);
      const what = 'the health check to pass';
      await until(() => isHealthy(), { what, deadlineMs: START_MS, every: 100 }).catch((error) => {
        throw new Error(`${running.stdout}${running.stderr}`, { cause: error });
      });
      running.signal('SIGTERM');
      expect((await running.end()).code).toBe(0);
    },
  );
});

describe('a Dockerfile', () => {
  const build = async (text: string) =>
    buildStages(instructionsOf(text), { context: privateFolder(), env: {} });

  it.each([
    ['a step that fails', 'FROM a\nRUN exit 3', 'RUN exit 3 ended with 3'],
    ['a file that is not there', 'FROM a\nCOPY b-*.tgz ./', 'COPY b-*.tgz: the context has'],
    ['a stage that is not there', 'FROM a\nCOPY --from=b /opt /opt', 'there is no such stage'],
    ['what is no instruction', 'FROM a\nrun it', 'no instruction: run it'],
  ])('with %s is refused', async (_what, text, message) => {
    await expect(build(text)).rejects.toThrow(message);
  });
});
