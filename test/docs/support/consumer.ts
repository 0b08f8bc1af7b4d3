import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atExit } from '../../support/process.ts';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** What a reader may have installed beside Holdfast. */
const PACKAGES = [
  ...['@electric-sql/pglite', '@hono/node-server', '@nestjs/common', '@nestjs/core'],
  ...['@nestjs/schedule', '@opentelemetry/api', '@opentelemetry/sdk-trace-node'],
  ...['@types/express', '@types/node', '@types/pg', 'bullmq', 'express', 'fastify'],
  ...['hono', 'ioredis', 'node-cron', 'pg', 'redis', 'redis-semaphore', 'redlock', 'typescript'],
  ...['vitest', 'zod'],
];

/**
 * `holdfast`, but on a port of the page's own where the reader gets 4747: the first `up` or `demo` that
 * runs gets it, the next one whichever is free, as it would.
 */
const SHIM = (bin: string) => `#!/usr/bin/env bash
case "$1 $*" in
  *--port*) ;;
  up\\ *|demo\\ *) if mkdir "$DOCS_PORT_TAKEN" 2>/dev/null; then set -- "$@" --port "$DOCS_PORT"; fi ;;
esac
exec "${process.execPath}" "${bin}" "$@"
`;

/** A folder in which `holdfast` and what readers use beside it is installed. */
export class Consumer {
  readonly folder: string;

  constructor() {
    // The real path: what Node and TypeScript say about a file is compared with it.
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-docs-')));
    atExit(() => this.remove());
    writeFileSync(join(this.folder, 'package.json'), '{ "private": true, "type": "module" }\n');
    const modules = join(this.folder, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    symlinkSync(ROOT, join(modules, 'holdfast'), 'dir');
    for (const name of PACKAGES) {
      const target = join(ROOT, 'node_modules', name);
      if (!existsSync(target)) throw new Error(`${name} is not installed: npm ci`);
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(target, join(modules, name), 'dir');
    }
    const shim = join(this.bin, 'holdfast');
    writeFileSync(shim, SHIM(join(ROOT, 'dist/lib/cli/bin.js')));
    chmodSync(shim, 0o755);
  }

  get bin(): string {
    return join(this.folder, 'node_modules/.bin');
  }

  /** A new folder below. */
  subfolder(...names: readonly string[]): string {
    const path = join(this.folder, ...names);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** The environment of the one who runs the tests, without what would change what a block does. */
  env(home: string): Record<string, string> {
    const own = Object.entries(process.env).filter(
      ([name]) => !/^(HOLDFAST_|NO_COLOR|FORCE_|NODE_|VITEST|npm_|TEST$|COLUMNS|LINES)/.test(name),
    );
    return {
      ...(Object.fromEntries(own) as Record<string, string>),
      PATH: [this.bin, dirname(process.execPath), process.env.PATH].join(':'),
      ...{ HOME: home, TERM: 'dumb', LANG: 'C.UTF-8' },
      // That npm has a newer version of itself is no part of what a command says.
      npm_config_update_notifier: 'false',
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
