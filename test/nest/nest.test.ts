import 'reflect-metadata';
import { Injectable, Module, Scope, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryStore, Holdfast } from '../../src/index.ts';
import {
  currentLease,
  HoldfastModule,
  type HoldfastModuleOptions,
  Leader,
  OncePer,
  WithLease,
} from '../../src/nest/index.ts';
import { until } from '../support/until.ts';

type Decorator = (target: object, name: string, descriptor: PropertyDescriptor) => void;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

/** What the compiler makes of decorators above a method: the lowest is applied first. */
function decorate(owner: object, name: string, ...decorators: readonly unknown[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name) ?? {};
  for (const decorator of [...decorators].reverse() as Decorator[])
    decorator(owner, name, descriptor);
  Object.defineProperty(owner, name, descriptor);
}

async function start<T>(
  provided: Type<T>,
  options: HoldfastModuleOptions,
  root = HoldfastModule.forRoot(options),
) {
  class AppModule {}
  Module({ imports: [root, ScheduleModule.forRoot()], providers: [provided] })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: false,
    abortOnError: false,
  });
  closers.push(() => app.close());
  return { app, of: app.get(provided), holdfast: app.get(Holdfast) };
}

/** A provider class with one method, under these decorators. */
function serviceOf<A extends unknown[], R>(
  work: (this: unknown, ...args: A) => R,
  ...decorators: readonly unknown[]
) {
  class Mails {
    send(...args: A): R {
      return work.apply(this, args);
    }
  }
  Injectable()(Mails);
  decorate(Mails.prototype, 'send', ...decorators);
  return Mails;
}

describe('@WithLease', () => {
  it('runs the method under a lease, with its arguments, its this and its result', async () => {
    const store = createMemoryStore();
    const Mails = serviceOf(async function (this: unknown, a: number, b: number) {
      const { fence, lease } = currentLease();
      return { sum: a + b, owner: this, isHeld: fence > 0 && lease.isHeld(), key: lease.key };
    }, WithLease('mails'));
    const { of, holdfast } = await start(Mails, { store });
    expect(await of.send(1, 2)).toEqual({ sum: 3, owner: of, isHeld: true, key: 'mails' });
    expect(holdfast.held).toBe(0);
  });

  it('refuses a call while another application holds the lease of these arguments', async () => {
    const store = createMemoryStore();
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const Mails = serviceOf(
      async (_to: string) => ended,
      WithLease((to: string) => `mails:${to}`),
    );
    const [ana, ben] = [await start(Mails, { store }), await start(Mails, { store })];
    const sent = ana.of.send('a');
    await until(() => ana.holdfast.held === 1, { what: 'the lease of ana' });
    await expect(ben.of.send('a')).rejects.toMatchObject({ code: 'LEASE_HELD', key: 'mails:a' });
    const other = ben.of.send('b');
    end();
    await Promise.all([sent, other]);
  });
});

describe('@OncePer', () => {
  const CRON = Cron('0 3 * * *', { name: 'nightly', waitForCompletion: true });

  it.each([
    ['below @Cron', [CRON, OncePer('nightly', { per: '1d' })]],
    ['above @Cron', [OncePer('nightly', { per: '1d' }), CRON]],
  ])('B-09 %s runs a fire on one of three applications', async (_where, decorators) => {
    const store = createMemoryStore();
    let runs = 0;
    const Mails = serviceOf(
      async () => {
        currentLease().assertHeld();
        runs += 1;
      },
      ...decorators,
    );
    const apps = [];
    for (let i = 0; i < 3; i++) apps.push(await start(Mails, { store }));
    const jobs = apps.map(({ app }) => app.get(SchedulerRegistry).getCronJob('nightly'));
    await Promise.all(jobs.map((job) => job.fireOnTick()));
    expect(runs).toBe(1);
    expect(await Promise.all(apps.map(({ of }) => of.send()))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('B-09 rejects with the error of the job, whose period is used', async () => {
    const Mails = serviceOf(
      async () => {
        throw new Error('no paper');
      },
      OncePer('nightly', { per: '1d' }),
    );
    const { of } = await start(Mails, { store: createMemoryStore() });
    await expect(of.send()).rejects.toThrow('no paper');
    expect(await of.send()).toBeUndefined();
  });
});

describe('@Leader', () => {
  /** A service that leads until its lease is over, and says so. */
  function leading(name: string, said: string[], fails = 0) {
    let failures = fails;
    return serviceOf(async () => {
      said.push(`${name} leads`);
      if (failures-- > 0) throw new Error('no paper');
      const { signal } = currentLease();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      said.push(`${name} stops`);
    }, Leader('scheduler'));
  }

  it('leads in one application, and in the next when that one is closed', async () => {
    const store = createMemoryStore();
    const said: string[] = [];
    const ana = await start(leading('ana', said), { store });
    await until(() => said.length === 1, { what: 'ana to lead' });
    await start(leading('ben', said), { store });
    await ana.app.close();
    await until(() => said.length === 3, { what: 'ben to lead' });
    expect(said).toEqual(['ana leads', 'ana stops', 'ben leads']);
  });

  it('leads again after the method has failed', async () => {
    const said: string[] = [];
    await start(leading('ana', said, 1), { store: createMemoryStore() });
    await until(() => said.length === 2, { what: 'ana to lead again' });
  });

  it('is refused on a request-scoped class, and twice for one election', async () => {
    const Scoped = leading('ana', []);
    Injectable({ scope: Scope.REQUEST })(Scoped);
    const store = createMemoryStore();
    await expect(start(Scoped, { store })).rejects.toThrow(
      '@Leader is "scheduler": Mails must not be request-scoped',
    );
    const Twice = leading('ana', []);
    Object.assign(Twice.prototype, { async also() {} });
    decorate(Twice.prototype, 'also', Leader('scheduler'));
    await expect(start(Twice, { store })).rejects.toThrow(
      '@Leader is "scheduler": two methods have this election',
    );
  });
});

describe('HoldfastModule', () => {
  it('takes its options from a factory, and closes the Holdfast with the application', async () => {
    const store = createMemoryStore();
    const useFactory = async () => ({ store, name: 'ana' });
    const root = HoldfastModule.forRootAsync({ useFactory });
    const Mails = serviceOf(async () => currentLease().lease.holder, WithLease('mails'));
    const { app, of, holdfast } = await start(Mails, {}, root);
    expect(await of.send()).toContain('ana');
    await app.close();
    await expect(holdfast.acquire('mails')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('keeps an application from starting whose decorators have no module', async () => {
    class AppModule {}
    Module({ providers: [serviceOf(async () => {}, WithLease('mails'))] })(AppModule);
    const options = { logger: false, abortOnError: false } as const;
    await expect(NestFactory.createApplicationContext(AppModule, options)).rejects.toThrow(
      /can't resolve dependencies of the Mails/,
    );
  });

  it.each([
    ['an unknown option', { prefx: 'a' }, 'prefx is'],
    ['an address that is none', { store: 'redis' }, 'store'],
    ['a time that is none', { closeWithin: 'soon' }, 'closeWithin is "soon": a duration is'],
  ])('refuses %s', async (_what, options, message) => {
    const Mails = serviceOf(async () => {});
    const started = async () => start(Mails, options as HoldfastModuleOptions);
    await expect(started()).rejects.toThrow(message);
  });

  it('refuses a factory that is none, and options that a factory made wrong', async () => {
    const wrong = { useFactory: 7 } as never;
    expect(() => HoldfastModule.forRootAsync(wrong)).toThrow('useFactory is 7: it has to be');
    const root = HoldfastModule.forRootAsync({ useFactory: () => null as never });
    await expect(
      start(
        serviceOf(async () => {}),
        {},
        root,
      ),
    ).rejects.toThrow('the options of HoldfastModule is null');
  });
});

describe('what decorators refuse, when the class is defined', () => {
  it.each([
    ['a key that is none', () => WithLease(''), 'key is "": a key is'],
    [
      'an option that is none',
      () => WithLease('a', { tll: 1 } as never),
      'tll is 1: unknown option',
    ],
    ['a period without length', () => OncePer('a', { per: 'daily' }), 'per is "daily": a duration'],
    ['an election without a name', () => Leader(''), 'election is "": a key is'],
  ])('%s', (_what, make, message) => {
    expect(make).toThrow(message);
  });

  it('standard decorators, which cannot ask Nest for anything', () => {
    const context = { kind: 'method', name: 'send', static: false };
    const standard = WithLease('a') as unknown as (method: unknown, context: object) => void;
    expect(() => standard(async () => {}, context)).toThrow(
      'set "experimentalDecorators": true in tsconfig.json',
    );
  });

  it('a static method', () => {
    const Mails = serviceOf(async () => {});
    const owner = Object.assign(Mails, { async send() {} });
    expect(() => decorate(owner, 'send', WithLease('a'))).toThrow(
      '@WithLease is "send": it decorates a method of an instance',
    );
  });

  it('and at a call: an instance that Nest did not make, a key that is none, no lease at all', async () => {
    const Mails = serviceOf(
      async (_key: string) => {},
      WithLease((key: string) => key),
    );
    await expect(new Mails().send('a')).rejects.toThrow(
      '@WithLease is "Mails.send": this instance was not made by Nest',
    );
    const { of } = await start(Mails, { store: createMemoryStore() });
    await expect(of.send('')).rejects.toThrow('key is "": a key is');
    expect(() => currentLease()).toThrow('@WithLease, @OncePer or @Leader');
  });
});
