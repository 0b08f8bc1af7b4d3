/** A Nest application with a schedule. All instances have the same one. It is compiled to CommonJS, as `nest build` does. */
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { open } from 'holdfast';
import { OncePer, useHoldfast } from './once-per.cts';

const PER_MS = 2_000;
const [name = ''] = process.argv.slice(2);

@Injectable()
class Mails {
  @Cron('*/2 * * * * *')
  @OncePer('mails', { per: PER_MS, tolerance: '800ms' })
  async send(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const fire = Math.floor(Date.now() / PER_MS) * PER_MS;
    process.send?.({ said: 'ran', fire });
  }
}

@Module({ imports: [ScheduleModule.forRoot()], providers: [Mails] })
class AppModule {}

async function main(): Promise<void> {
  const { HOLDFAST_STORE = '', HOLDFAST_PREFIX: prefix = '' } = process.env;
  const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine: 'off' });
  useHoldfast(holdfast);
  // The end of a run is on record before its lease is released.
  holdfast.on('lease.released', () => process.send?.({ said: 'released' }));
  await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  process.send?.({ said: 'ready' });
}

void main();
