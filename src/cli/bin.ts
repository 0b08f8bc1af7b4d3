#!/usr/bin/env node
import module from 'node:module';
import { startEarly } from '../worker/supervisor/supervisor-process.ts';

const args = process.argv.slice(2);
const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
const isRun = args[0] === 'run' && own.length < args.length;
if (isRun && !own.some((arg) => arg === '--help' || arg === '-h') && process.platform !== 'win32')
  startEarly();

// Node 22.1 and later keep what they have compiled: the next call starts sooner.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown };
enableCompileCache?.();

const { main } = await import('./main.ts');
await main(args);
