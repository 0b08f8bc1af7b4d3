#!/usr/bin/env node
import module from 'node:module';
import { startEarly } from '../worker/supervisor/supervisor-process.ts';

const args = process.argv.slice(2);
const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
const isRun =
  args[0] === 'run' &&
  own.length < args.length &&
  !own.some((arg) => arg === '--help' || arg === '-h');
if (isRun && process.platform !== 'win32') startEarly();

// Node 22.1 and later keep what they have compiled: the next call starts sooner.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown };
enableCompileCache?.();

// No top-level await: this file is published as CommonJS, which Node starts sooner.
const loading = isRun ? import('./main-run.ts') : import('./main.ts');
void loading.then(({ main }) => main(args));
