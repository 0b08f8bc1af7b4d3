import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Consumer } from '../support/consumer.ts';
import { ROOT } from '../support/packed-package.ts';

const { version, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  exports: Record<string, unknown>;
};
const subpaths = Object.keys(exports)
  .filter((subpath) => subpath !== './package.json')
  .map((subpath) => subpath.replace('.', 'holdfast'));

/** An import reads a handful of files. A change that raises these numbers says why. */
const MOST_MODULES: Readonly<Record<string, number>> = { holdfast: 6, 'holdfast/client': 3 };
/** What of the package's own is for servers, operators and tests, or for a store that nobody has opened yet. */
const APART =
  /^holdfast\/dist\/lib\/(server|cli|client|testing|dashboard|chunks\/(server|command|testing|\w+-store))/;

/** Many small processes, on a machine that does something else, too. */
const SLOW = { timeout: 60_000 };

const NEST = ['@nestjs/common', '@nestjs/core'];
const consumer = new Consumer();
/** A project that has the optional peers of `holdfast/nest`, too. */
const nestConsumer = new Consumer({ others: NEST });
const consumerOf = (subpath: string) => (subpath === 'holdfast/nest' ? nestConsumer : consumer);
const ofOthers = (name: string) => !name.startsWith('holdfast/') && !name.startsWith('node:');
const packagesIn = (names: readonly string[]) => {
  const owners = names.filter(ofOthers).map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
  return [...new Set(owners)].sort();
};

describe.concurrent('in a project that has it installed', SLOW, () => {
  it.each(subpaths)('%s is imported by ES modules', async (subpath) => {
    const text = `import * as all from '${subpath}'; console.log(Object.keys(all).length > 0);`;
    const ran = await consumerOf(subpath).run(text);
    expect(ran).toEqual({ code: 0, stdout: 'true\n', stderr: '' });
  });

  it.each(subpaths)('%s is required by CommonJS', async (subpath) => {
    const text = `
      const required = require('${subpath}');
      import('${subpath}').then((imported) => {
        for (const [name, value] of Object.entries(imported))
          if (required[name] !== value && name !== 'module.exports') throw new Error(name + ' is there twice');
        console.log(Object.keys(imported).length > 0);
      });`;
    const ran = await consumerOf(subpath).run(text, 'cjs');
    // The first of Node 22 that have it say that it is experimental, where it is used outside node_modules.
    const isExperimental =
      /^\(node:\d+\) ExperimentalWarning: .*?using require\(\).*?\(Use `node [^\n]*\n/s;
    expect(ran.stderr.replace(isExperimental, '')).toBe('');
    expect(ran).toMatchObject({ code: 0, stdout: 'true\n' });
  });

  it.each(['holdfast/redlock', 'holdfast/redlock4'])(
    '%s is its class, when required',
    async (subpath) => {
      const text = `
      const Redlock = require('${subpath}');
      const { Lock } = Redlock;
      console.log(typeof Redlock, Redlock === Redlock.default, typeof Lock, new Redlock(['memory:']) instanceof Redlock);`;
      expect((await consumer.run(text, 'cjs')).stdout).toBe('function true function true\n');
    },
  );

  it('its own facts can be had, and nothing of its inside', async () => {
    const ran = await consumer.run(
      `
      const { version } = require('holdfast/package.json');
      let code;
      try { require('holdfast/dist/lib/chunks/holdfast.js'); } catch (error) { code = error.code; }
      console.log(version, code);`,
      'cjs',
    );
    expect(ran.stdout).toBe(`${version} ERR_PACKAGE_PATH_NOT_EXPORTED\n`);
  });
});

describe.concurrent('what is loaded', SLOW, () => {
  it.each(['holdfast', 'holdfast/client', 'holdfast/node-cron', 'holdfast/redlock'])(
    'by %s is nothing of the server, of a store that is not open, or of another package',
    async (subpath) => {
      const loaded = await consumer.loadedBy(`import '${subpath}';`);
      const isApart = (name: string) =>
        APART.test(name) && !name.startsWith(`${subpath.replace('/', '/dist/lib/')}/`);
      expect(loaded).toContain(entryOf(subpath));
      expect(loaded.filter(isApart)).toEqual([]);
      expect(packagesIn(loaded)).toEqual([]);
      const own = loaded.filter((name) => name.startsWith('holdfast/'));
      expect(own.length).toBeLessThanOrEqual(MOST_MODULES[subpath] ?? Number.POSITIVE_INFINITY);
    },
  );

  it('by holdfast/client is nothing of Node: it runs in browsers, too', async () => {
    const loaded = await consumer.loadedBy(`import 'holdfast/client';`);
    expect(loaded.filter((name) => name.startsWith('node:'))).toEqual([]);
  });

  it('by holdfast/nest is Nest itself, and nothing of the server or of a store', async () => {
    const loaded = await nestConsumer.loadedBy(`import 'holdfast/nest';`);
    expect(loaded.filter((name) => APART.test(name))).toEqual([]);
    expect(packagesIn(loaded)).toEqual(expect.arrayContaining(NEST));
    expect(packagesIn(loaded)).not.toContain('hono');
  });

  it('by holdfast/nest is named where Nest is missing', async () => {
    const ran = await consumer.run(`import 'holdfast/nest';`);
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining("'@nestjs/common'") });
  });

  it('by holdfast/testing is nothing of the server, nor of another package', async () => {
    const loaded = await consumer.loadedBy(`import 'holdfast/testing';`);
    expect(
      loaded.filter((name) =>
        /^holdfast\/dist\/lib\/((chunks\/)?(server|command)|cli\/)/.test(name),
      ),
    ).toEqual([]);
    expect(packagesIn(loaded)).toEqual([]);
  });

  it('by holdfast/server is what it answers with, but no store, log or command line', async () => {
    const loaded = await consumer.loadedBy(`import 'holdfast/server';`);
    const packages = packagesIn(loaded);
    expect(packages).toEqual(expect.arrayContaining(['@hono/node-server', 'hono', 'zod']));
    for (const absent of ['libsql']) expect(packages).not.toContain(absent);
    expect(
      loaded.filter((name) =>
        /^holdfast\/dist\/lib\/((chunks\/)?(command|testing)|cli\/)/.test(name),
      ),
    ).toEqual([]);
  });

  it('to hold a lease is the store that was asked for, alone', async () => {
    const leaseOn = (store: string) => `
      import { open } from 'holdfast';
      const holdfast = await open('${store}');
      await holdfast.withLease('a', async () => {});
      await holdfast.close();`;
    const inMemory = await consumer.loadedBy(leaseOn('memory:'));
    expect(packagesIn(inMemory)).toEqual([]);
    const onFile = await consumer.loadedBy(leaseOn('sqlite:a.db'));
    expect(onFile).toContain('holdfast/dist/lib/chunks/sqlite-store.js');
    expect(packagesIn(onFile).filter((name) => /^(hono|zod)$/.test(name))).toEqual([]);
  });
});

function entryOf(subpath: string): string {
  return `${subpath.replace('holdfast', 'holdfast/dist/lib')}/index.js`;
}

/** For a program in which no part of libsql can be found. */
const WITHOUT_LIBSQL = `
      import Module from 'node:module';
      import { open } from 'holdfast';
      const resolve = Module._resolveFilename;
      Module._resolveFilename = (name, ...rest) => {
        if (/^@?libsql/.test(name)) throw new Error('Cannot find module ' + name);
        return resolve(name, ...rest);
      };
      process.on('unhandledRejection', () => console.log('unhandled'));`;

describe.concurrent('without libsql, which is optional', SLOW, () => {
  it('K-16 a file is refused once, in words, by a Node without SQLite, and the process lives on', async () => {
    const ran = await consumer.run(`${WITHOUT_LIBSQL}
      process.env.HOLDFAST_SQLITE_DRIVER = 'libsql';
      await open('sqlite:absent.db').catch(({ code, message }) => console.log(code, message));
      const holdfast = await open('memory:');
      await holdfast.withLease('a', async () => console.log('held'));
      await holdfast.workflows.claim('w').catch(({ code }) => console.log(code));
      // A rejection that no program can catch comes after this turn.
      await new Promise((resolve) => setImmediate(resolve));
      await holdfast.close();
      console.log('alive');`);
    const lines = ran.stdout.split('\n');
    expect(lines[0]).toMatch(
      /^STORE_UNSUITABLE store sqlite:absent\.db .* Node 22\.13 .* 'npm install libsql'/,
    );
    expect(lines.slice(1)).toEqual(['held', 'STORE_UNSUITABLE', 'alive', '']);
    expect(ran).toMatchObject({ code: 0, stderr: '' });
  });

  it("a file is kept by Node's own SQLite, without a warning, where Node has it", async () => {
    const ran = await consumer.run(`${WITHOUT_LIBSQL}
      const [major, minor] = process.versions.node.split('.').map(Number);
      const isThere = major > 22 || (major === 22 && minor >= 13);
      await open('sqlite:lean.db').then(
        async (holdfast) => {
          await holdfast.withLease('a', async () => console.log(isThere));
          await holdfast.close();
        },
        ({ code }) => console.log(code === 'STORE_UNSUITABLE' && !isThere),
      );`);
    expect(ran).toEqual({ code: 0, stdout: 'true\n', stderr: '' });
  });
});

describe.concurrent('without its optional peers', SLOW, () => {
  it('has none of them', async () => {
    const peers = ['@opentelemetry/api', 'luaparse', 'redis', 'ioredis'];
    const ran = await consumer.run(`
      for (const name of ${JSON.stringify(peers)})
        await import(name).then(() => console.log(name), () => {});`);
    expect(ran.stdout).toBe('');
  });

  it('a lease is held, a fleet polls, and a store in a file is kept', async () => {
    const ran = await consumer.run(`
      import { open } from 'holdfast';
      const holdfast = await open('sqlite:peers.db');
      await holdfast.sessions.add({ id: 'a' });
      const polled = new Promise((resolve) => {
        holdfast.poller({ every: '100ms', poll: (target) => resolve(target.id) }).start();
      });
      console.log(await holdfast.withLease('b', () => polled));
      await holdfast.close();`);
    expect(ran).toEqual({ code: 0, stdout: 'a\n', stderr: '' });
  });

  it('an SDK that was set up with a copy out of reach is told of, and what was to be traced is done', async () => {
    const ran = await consumer.run(`
      import { open } from 'holdfast';
      globalThis[Symbol.for('opentelemetry.js.api.1')] = { version: '1.9.0', trace: {} };
      const holdfast = await open('memory:');
      await holdfast.withLease('a', async () => console.log('held'));
      await holdfast.close();`);
    expect(ran).toMatchObject({ code: 0, stdout: 'held\n' });
    expect(ran.stderr).toContain('npm install @opentelemetry/api');
  });

  it('B-30 a program is simulated', async () => {
    const ran = await consumer.run(`
      import { simulate } from 'holdfast/testing';
      const setup = async ({ holdfast, sink }) => {
        const poll = ({ id }, { fence }) => sink.write(id, 'on', { fence });
        await holdfast.poller({ every: '5s', poll }).start();
      };
      const report = await simulate({ setup, targets: ['a'], seeds: 1, duration: '3m' });
      console.log(report.failure, report.reached.get('poll done') > 10);`);
    expect(ran).toEqual({ code: 0, stdout: 'null true\n', stderr: '' });
  });

  it('a simulated Redis says what it reads its scripts with', async () => {
    const ran = await consumer.run(`
      import { simulateWorld } from 'holdfast/testing';
      try { await simulateWorld({ seed: 1, hours: 0.01 }); } catch (error) { console.log(error.message); }`);
    expect(ran).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('npm install --save-dev luaparse'),
    });
  });
});
