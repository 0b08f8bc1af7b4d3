#!/usr/bin/env node
import module from 'node:module';

// Node 22.1 and later keep what they have compiled: the next call starts sooner.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown };
enableCompileCache?.();

const { main } = await import('./main.ts');
await main(process.argv.slice(2));
