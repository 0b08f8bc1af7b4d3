import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { startRedis } from '../../support/redis-server.ts';
import type { Finding } from '../../support/source-tree.ts';
import { ROOT } from './consumer.ts';
import type { Block } from './markdown.ts';

/** What is wrong with a text of this kind, in words; undefined if nothing is. The folder is for whatever it needs. */
type Check = (text: string, folder: string) => string | undefined | Promise<string | undefined>;

/** By language. What is not here has to be a file, or to say why nobody can try it. */
const CHECKS: Readonly<Record<string, Check>> = {
  json: jsonProblem,
  yaml: yamlProblem,
  conf: redisConfProblem,
  lua: luaProblem,
  text: textProblem,
};

/** By the end of a file's name; the longest that fits counts. */
const FILE_CHECKS: Readonly<Record<string, Check>> = {
  '.json': jsonProblem,
  '.yaml': yamlProblem,
  '.yml': yamlProblem,
  'redis.conf': redisConfProblem,
  '.lua': luaProblem,
  '.sh': shellProblem,
  '.mjs': moduleProblem,
  '.js': moduleProblem,
  'holdfast.config.mjs': configProblem,
};

/** A block that is neither code nor a command: it has to be what it is said to be. */
export async function dataFindings(block: Block, folder: string): Promise<Finding[]> {
  const check = CHECKS[block.language];
  const what =
    check === undefined
      ? `can not be tried: say <!-- not run: REASON --> or <!-- file: NAME -->`
      : await check(block.text, folder);
  return what === undefined ? [] : [{ path: block.path, line: block.line, what }];
}

/** A block that is a file, which has been written to that folder. */
export async function fileFindings(block: Block, folder: string): Promise<Finding[]> {
  const name = block.file ?? '';
  const ending = Object.keys(FILE_CHECKS)
    .filter((end) => name.endsWith(end))
    .sort((a, b) => b.length - a.length)[0];
  const check = ending === undefined ? undefined : FILE_CHECKS[ending];
  const what = await check?.(block.text, folder);
  return what === undefined
    ? []
    : [{ path: block.path, line: block.line, what: `${name}: ${what}` }];
}

function jsonProblem(text: string): string | undefined {
  const problem = parseProblem(text);
  if (problem === undefined) return undefined;
  // Or a line each, as logs are.
  return text.split('\n').every((line) => parseProblem(line) === undefined) ? undefined : problem;
}

function parseProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`;
  }
}

function yamlProblem(text: string): string | undefined {
  const [first] = parseAllDocuments(text).flatMap(({ errors }) => errors);
  return first && `is not YAML: ${first.message}`;
}

/** A text is for people. What looks like commands, or code, is to be marked as such. */
function textProblem(text: string): string | undefined {
  if (/^\$ /m.test(text)) return "has commands: it is a 'console' block";
  return /^(import|export|const|let|await) .*[;{(]$/m.test(text)
    ? "has code: 'ts' or 'js'"
    : undefined;
}

async function luaProblem(text: string): Promise<string | undefined> {
  await using redis = await startRedis();
  try {
    await redis.cli('SCRIPT', 'LOAD', text);
    return undefined;
  } catch (error) {
    return `Redis refuses the script: ${(error as Error).message}`;
  }
}

/** A Redis is started with it, on a port of its own. */
async function redisConfProblem(text: string, folder: string): Promise<string | undefined> {
  const dir = mkdtempSync(join(folder, 'redis-'));
  try {
    const file = join(dir, 'shown.conf');
    writeFileSync(file, `${text}\n`);
    await using _ = await startRedis({ dir, args: ['--include', file] });
    return undefined;
  } catch (error) {
    return `redis-server does not start with it: ${(error as Error).message}`;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function shellProblem(text: string): string | undefined {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
  return status === 0 ? undefined : `is no shell script: ${stderr.trim()}`;
}

/** Only read: it may be a service, which whoever starts it ends too. */
function moduleProblem(text: string): string | undefined {
  const args = ['--check', '--input-type=module', '-'];
  const { status, stderr } = spawnSync(process.execPath, args, { input: text, encoding: 'utf8' });
  return status === 0 ? undefined : `is no module: ${stderr.trim()}`;
}

/** Imported, as `holdfast` does, and held to what a configuration may say. */
function configProblem(_: string, folder: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const code = `const { default: config } = await import('./holdfast.config.mjs');
      const { checkConfig } = await import(process.argv[1]);
      checkConfig(config, 'holdfast.config.mjs');`;
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', code, join(ROOT, 'dist/config-schema.js')],
      { cwd: folder },
    );
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    child.once('close', (status) => {
      resolve(status === 0 ? undefined : `is no configuration: ${said.trim()}`);
    });
  });
}
