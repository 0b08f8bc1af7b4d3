import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requirePrograms } from './require-redis.ts';

let bin: string;
let policyFile: string;
let said: string[];

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'holdfast-bin-'));
  policyFile = join(bin, 'policy-rc.d');
  said = [];
  for (const tool of ['sh', 'env', 'rm', 'chmod', 'cat']) symlinkSync(found(tool), join(bin, tool));
  for (const other of ['openssl', 'ffmpeg', 'tmux'])
    writeFileSync(join(bin, other), '#!/bin/sh\n', { mode: 0o755 });
});
afterEach(() => rmSync(bin, { recursive: true }));

function found(tool: string): string {
  return existsSync(`/bin/${tool}`) ? `/bin/${tool}` : `/usr/bin/${tool}`;
}

/** A program that notes how it was called, and then does this. */
function program(name: string, script: string): void {
  const text = `#!/bin/sh\necho "${name} $*" >> ${bin}/calls\n${script}\n`;
  writeFileSync(join(bin, name), text, { mode: 0o755 });
}

const INSTALLS = () => `
  echo "$DEBIAN_FRONTEND" >> ${bin}/calls
  cat ${policyFile} > ${bin}/policy-seen
  case "$*" in *install*) printf '#!/bin/sh' > ${bin}/redis-server; chmod 755 ${bin}/redis-server;; esac`;

function calls(): string[] {
  return readFileSync(join(bin, 'calls'), 'utf8').trim().split('\n');
}

function run({ isRoot = false, ci = '' } = {}): void {
  const env = { PATH: bin, ...(ci ? { CI: ci } : {}) };
  requirePrograms({ env, isRoot, policyFile, say: (line) => said.push(line) });
}

describe('the integration tests', () => {
  it('take the redis-server that is there and touch nothing', () => {
    program('redis-server', '');
    program('apt-get', 'exit 1');
    run({ isRoot: true, ci: 'true' });
    expect(said).toEqual([]);
    expect(existsSync(join(bin, 'calls'))).toBe(false);
  });

  it('install redis-server as root without letting its service start', () => {
    program('apt-get', INSTALLS());
    run({ isRoot: true });
    expect(calls()).toEqual([
      'apt-get -o DPkg::Lock::Timeout=120 update',
      'noninteractive',
      'apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends redis-server',
      'noninteractive',
    ]);
    expect(readFileSync(join(bin, 'policy-seen'), 'utf8')).toBe('#!/bin/sh\nexit 101\n');
    expect(existsSync(policyFile)).toBe(false);
    expect(said).toHaveLength(1);
  });

  it('install whatever of it is missing, and nothing else', () => {
    rmSync(join(bin, 'openssl'));
    program('redis-server', '');
    program(
      'apt-get',
      `case "$*" in *install*) touch ${bin}/openssl; chmod 755 ${bin}/openssl;; esac`,
    );
    symlinkSync(found('touch'), join(bin, 'touch'));
    run({ isRoot: true });
    expect(calls()).toContain(
      'apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends openssl',
    );
  });

  it('leave a policy that was there before as it was', () => {
    writeFileSync(policyFile, 'the owner says no');
    program('apt-get', INSTALLS());
    run({ isRoot: true });
    expect(readFileSync(policyFile, 'utf8')).toBe('the owner says no');
  });

  it('install it in CI through sudo that never asks', () => {
    program('sudo', 'shift; exec "$@"');
    program('apt-get', INSTALLS());
    run({ ci: 'true' });
    expect(calls()[0]).toMatch(/^sudo -n env DEBIAN_FRONTEND=noninteractive POLICY_FILE=/);
    expect(existsSync(join(bin, 'redis-server'))).toBe(true);
  });

  it('ask a developer to install it', () => {
    program('apt-get', 'exit 1');
    expect(() => run()).toThrow('need redis-server on the PATH: install it');
    expect(existsSync(join(bin, 'calls'))).toBe(false);
  });

  it('ask for it where there is no apt-get', () => {
    expect(() => run({ isRoot: true })).toThrow('need redis-server on the PATH');
  });

  it('show what apt-get said when it fails, and take the policy back', () => {
    program('apt-get', 'echo "E: Unable to locate package" >&2; exit 100');
    expect(() => run({ isRoot: true })).toThrow('E: Unable to locate package');
    expect(existsSync(policyFile)).toBe(false);
  });
});
