import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Consumer } from '../support/consumer.ts';
import { ROOT } from '../support/packed-package.ts';

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** All of the declarations are checked, which takes as long as it takes. */
const SLOW = { timeout: 180_000 };

/** As strict as it gets. The libraries that come with TypeScript itself are not checked again. */
const STRICT = {
  ...{ strict: true, noEmit: true, skipLibCheck: false, skipDefaultLibCheck: true },
  ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  ...{ noPropertyAccessFromIndexSignature: true, verbatimModuleSyntax: true },
  ...{ isolatedModules: true, target: 'es2022' },
};

const EVERYTHING = `
import { type AcquireResult, createMemoryStore, defineConfig, type Lease, LeaseLostError, open } from 'holdfast';
import { HoldfastApiError, HoldfastClient } from 'holdfast/client';
import * as redlock from 'holdfast/redlock';
import { createApp, type HoldfastApp } from 'holdfast/server';
import { FakeClock } from 'holdfast/testing';

export const config = defineConfig({ store: 'redis://localhost', resources: { tuners: 4 } });
export const drop = redlock;

export async function use(signal: AbortSignal): Promise<number> {
  await using holdfast = await open(createMemoryStore({ clock: new FakeClock() }), { quarantine: 'off' });
  holdfast.on('lease.lost', ({ key, reason }) => console.log(key, reason));
  const result: AcquireResult = await holdfast.acquire('device:7', { ttl: '30s', signal });
  if (!result.ok) return result.expiresInMs;
  const lease: Lease = result.lease;
  try {
    lease.assertHeld();
  } catch (error) {
    if (error instanceof LeaseLostError) console.log(error.code satisfies 'LEASE_LOST');
  }
  // @ts-expect-error: it is a number or a text with a unit
  await holdfast.acquire('device:8', { ttl: {} });
  const app: HoldfastApp = createApp(holdfast);
  const answer: Response = await app.fetch(new Request('http://localhost/readyz'));
  return answer.status;
}

export const client = new HoldfastClient({ url: 'http://localhost:4747', token: 'x' });
export const isOurs = (error: unknown): boolean => error instanceof HoldfastApiError;
`;

const OF_REDLOCK_4 = `
import Redlock, { Lock, LockError } from 'holdfast/redlock4';

export async function use(): Promise<number> {
  const redlock = new Redlock(['redis://localhost'], { retryCount: 1 });
  redlock.on('clientError', (error: Error) => console.log(error.message));
  const lock: Lock = await redlock.lock(['a', 'b'], 5_000);
  redlock.lock('c', 5_000, (error, other) => console.log(error instanceof LockError, other?.fence));
  await lock.unlock();
  return lock.expiration;
}
`;

const FROM_COMMONJS = `
import holdfast = require('holdfast');
import Redlock = require('holdfast/redlock');
import server = require('holdfast/server');

const opened: Promise<holdfast.Holdfast> = holdfast.open('memory:');
const redlock = new Redlock(['memory:'], { retryCount: 0 });
redlock.on('error', (error: unknown) => failed(error));
const failed = (error: unknown): boolean => error instanceof Redlock.ExecutionError;
export = opened.then((it) => server.createApp(it));
`;

const IN_A_BROWSER = `
import { HoldfastClient, OperatorClient } from 'holdfast/client';

export const client = new HoldfastClient({ url: location.origin, token: 'x' });
export const operator = new OperatorClient({ url: location.origin, token: 'x' });
export const started = client.start({ serviceRef: 'channel-7' }, { signal: AbortSignal.timeout(5) });
`;

/** What tsc says about files with these names and texts. */
async function check(
  consumer: Consumer,
  options: Record<string, unknown>,
  files: Record<string, string>,
): Promise<string> {
  for (const [name, text] of Object.entries(files)) consumer.write(name, text);
  const compilerOptions = { ...STRICT, ...options };
  const config = { compilerOptions, files: Object.keys(files) };
  const path = consumer.write(`tsconfig.${options.moduleResolution}.json`, JSON.stringify(config));
  return (await consumer.node([TSC, '--pretty', 'false', '--project', path])).stdout;
}

describe.concurrent('the types, in a strict project without optional peers', () => {
  const onNode = { lib: ['es2022'], types: ['node'] };

  it('are right for Node, from ES modules and from CommonJS, without the DOM', SLOW, async () => {
    const consumer = new Consumer({ others: ['@types/node'] });
    const options = { ...onNode, module: 'nodenext', moduleResolution: 'nodenext' };
    const files = { 'use.mts': EVERYTHING, 'use.cts': FROM_COMMONJS };
    expect(await check(consumer, options, files)).toBe('');
  });

  it(
    "are found by those who resolve as old Node did: 'main', 'types' and 'typesVersions'",
    SLOW,
    async () => {
      const consumer = new Consumer({ others: ['@types/node'] });
      // TypeScript 6 wants to be told that this is known to be old.
      const old = { moduleResolution: 'node10', ignoreDeprecations: '6.0', esModuleInterop: true };
      // The types of hono and zod are found through their `exports` alone.
      const lenient = { skipLibCheck: true, verbatimModuleSyntax: false, isolatedModules: false };
      const options = { ...onNode, module: 'commonjs', ...old, ...lenient };
      const files = { 'use.ts': EVERYTHING, 'four.ts': OF_REDLOCK_4 };
      expect(await check(consumer, options, files)).toBe('');
    },
  );

  it('are right for bundlers', SLOW, async () => {
    const consumer = new Consumer({ others: ['@types/node'] });
    const options = { ...onNode, module: 'esnext', moduleResolution: 'bundler' };
    expect(await check(consumer, options, { 'use.ts': EVERYTHING })).toBe('');
  });

  it('of holdfast/client need no Node: those of a browser will do', SLOW, async () => {
    const consumer = new Consumer();
    const browser = { lib: ['es2022', 'dom'], types: [] };
    const options = { ...browser, module: 'esnext', moduleResolution: 'bundler' };
    expect(await check(consumer, options, { 'use.ts': IN_A_BROWSER })).toBe('');
  });

  it('of the rest need those of Node, and say so where they are missing', SLOW, async () => {
    const consumer = new Consumer();
    const options = {
      lib: ['es2022'],
      types: [],
      module: 'nodenext',
      moduleResolution: 'nodenext',
    };
    const said = await check(consumer, options, { 'use.mts': `export { open } from 'holdfast';` });
    expect(said).toContain('npm i --save-dev @types/node');
  });
});
