/** A Nest application with a schedule. All instances have the same one. It is compiled to CommonJS, as `nest build` does. */
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Holdfast } from 'holdfast';
import { currentLease, HoldfastModule, Leader, OncePer } from 'holdfast/nest';

const PER_MS = 2_000;
const [name = ''] = process.argv.slice(2);
const { HOLDFAST_STORE: store, HOLDFAST_PREFIX: prefix } = process.env;

@Injectable()
class Mails {
  @Cron('*/2 * * * * *')
  @OncePer('mails', { per: PER_MS, tolerance: '800ms' })
  async send(): Promise<void> {
    currentLease().assertHeld();
    const fire = Math.floor(Date.now() / PER_MS) * PER_MS;
    process.send?.({ said: 'ran', fire });
  }

  @Leader('inbox')
  async watchInbox(): Promise<void> {
    const { signal, fence } = currentLease();
    process.send?.({ said: 'leads', fence });
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
}

@Module({
  imports: [
    HoldfastModule.forRoot({ store, name, prefix, quarantine: 'off' }),
    ScheduleModule.forRoot(),
  ],
  providers: [Mails],
})
class AppModule {}

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
  app.enableShutdownHooks(); // SIGTERM closes the Holdfast: another instance leads at once
  // The end of a run is on record before its lease is released.
  app.get(Holdfast).on('lease.released', () => process.send?.({ said: 'released' }));
  process.send?.({ said: 'ready' });
}

void main();
