import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../src/index.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const BIN = new URL('../../dist/cli/bin.js', import.meta.url).pathname;
const TIMEOUT_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
let postgres: PostgresServer;
let redis: RedisServer;
beforeAll(async () => {
  [postgres, redis] = await Promise.all([
    startPostgres(postgresPrograms() ?? '', { isDurable: true }),
    startRedis(),
  ]);
}, TIMEOUT_MS);
afterAll(async () => {
  await Promise.all([postgres?.[Symbol.asyncDispose](), redis?.stop()]);
  rmSync(folder, { recursive: true });
});

function holdfast(...args: string[]): { code: number | null; text: string } {
  const env = { ...process.env, HOLDFAST_QUARANTINE: 'off' };
  const run = spawnSync(process.execPath, [BIN, ...args], { env, encoding: 'utf8', cwd: folder });
  return { code: run.status, text: run.stdout + run.stderr };
}

describe('holdfast store copy', () => {
  it('B-21 moves a sleeping workflow, targets and sessions to PostgreSQL and to Redis, where the work continues', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const stores = [
      `sqlite:${join(folder, 'a.db')}`,
      `${postgres.url}?schema=moved`,
      redis.url,
    ] as const;
    const ran: string[] = [];
    const opened = async (address: string) => {
      const instance = await open(address, { quarantine: 'off' });
      const flow = instance.workflow<{ n: number }, string>('ship', async (context) => {
        await context.step('pack', () => void ran.push('pack'));
        await context.sleep('rest', 3_000);
        await context.step('send', () => void ran.push('send'));
        return 'sent';
      });
      return { instance, flow };
    };

    const first = await opened(stores[0]);
    const intent = ['intents', 'start', '1:0:19:283D', '--store'];
    expect(holdfast(...intent, stores[0])).toMatchObject({ code: 0 });
    const target = ['targets', 'add', 'http://127.0.0.1:1', '--id', 'device-1', '--store'];
    expect(holdfast(...target, stores[0])).toMatchObject({ code: 0 });
    await first.flow.run();
    await first.flow.start('order-1', { n: 1 });
    const isSleeping = async () => {
      for await (const { run } of first.instance.workflows.list())
        if (run?.phase === 'suspended') return true;
      return false;
    };
    await until(isSleeping, { what: 'the workflow to sleep' });
    await first.flow.stop();
    await first.instance.close();

    expect(holdfast('store', 'copy', stores[0], stores[1], '--dry-run')).toMatchObject({
      code: 0,
      text: expect.stringMatching(/can be copied[\s\S]*workflows +1/),
    });
    const copied = holdfast('store', 'copy', stores[0], stores[1], '--json');
    expect(copied.code, copied.text).toBe(0);
    expect(JSON.parse(copied.text)).toMatchObject({ counts: { workflows: 1, sessions: 1 } });
    expect(holdfast('store', 'copy', stores[0], stores[1]).text).toMatch(/is not empty: it has/);
    expect(holdfast('store', 'copy', stores[1], stores[2]).code).toBe(0);

    for (const store of stores) {
      const sessions = holdfast('sessions', 'ls', '--kind', 'live', '--store', store);
      expect(sessions.text).toMatch(/NEW .* live +1:0:19:283D/);
      expect(holdfast('targets', 'ls', '--store', store).text).toMatch(/device-1/);
      // A client that asks again finds its session.
      expect(holdfast(...intent, store, '--json').text).toMatch(/"replayed": true/);
    }

    const last = await opened(stores[2]);
    await last.flow.run();
    expect(await last.flow.result('order-1')).toBe('sent');
    await last.flow.stop();
    expect(ran).toEqual(['pack', 'send']);
    await last.instance.close();
  });

  it('starts over after kill -9 at any moment', { timeout: TIMEOUT_MS }, async () => {
    const from = `sqlite:${join(folder, 'b.db')}`;
    const filled = await open(from);
    for (let i = 0; i < 3_000; i++) void filled.records.put(`r${i}`, { i });
    await filled.records.put('last', { text: 'x'.repeat(9_000) });
    await filled.close();
    const to = `${postgres.url}?schema=killed`;
    let refused = 0;
    for (const afterMs of [200, 400, 600, 800, 1_000]) {
      const copying = spawn(process.execPath, [BIN, 'store', 'copy', from, to], { cwd: folder });
      setTimeout(() => copying.kill('SIGKILL'), afterMs);
      await once(copying, 'close');
      const found = holdfast('ls', '--store', to);
      if (/has begun and has not finished/.test(found.text)) refused++;
      if (copying.signalCode === null) break;
    }
    const copied = holdfast('store', 'copy', from, to);
    expect(copied.text, `${refused} refused`).toMatch(/same content|is not empty/);
    expect(holdfast('ls', '--store', to).code).toBe(0);
  });

  it('B-21 a refused copy makes no schema and no file', { timeout: TIMEOUT_MS }, async () => {
    const from = `sqlite:${join(folder, 'used.db')}`;
    await using used = await open(from);
    expect(await used.acquire('nightly')).toMatchObject({ ok: true });
    for (const to of [`${postgres.url}?schema=refused`, `sqlite:${join(folder, 'refused.db')}`])
      expect(holdfast('store', 'copy', from, to)).toMatchObject({
        code: 69,
        text: expect.stringMatching(/used\.db.*Nothing was copied/),
      });
    expect(await postgres.schemas()).not.toContain('refused');
    expect(existsSync(join(folder, 'refused.db'))).toBe(false);
  });

  it('says what is wrong with its arguments', () => {
    expect(holdfast('store', 'copy', 'memory:', 'sqlite:c.db')).toMatchObject({
      code: 64,
      text: expect.stringMatching(/FROM.*outlives its process/),
    });
    expect(holdfast('store', 'copy', 'sqlite:none.db', 'sqlite:c.db')).toMatchObject({
      code: 69,
      text: expect.stringMatching(/none\.db.*does not exist/),
    });
    const file = `sqlite:${join(folder, 'b.db')}`;
    expect(holdfast('store', 'copy', file, file)).toMatchObject({
      code: 64,
      text: expect.stringMatching(/another store than FROM/),
    });
    expect(holdfast('store', 'copy', file).code).toBe(64);
  });
});
