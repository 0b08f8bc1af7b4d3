/**
 * Reads a Dockerfile, and takes its steps in folders of this host: one for each stage, in place of an engine's layers. What
 * its base image has, this host has to have: Node, npm and a shell.
 */
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

interface Instruction {
  readonly word: string;
  readonly rest: string;
}

/** What the image says about its containers. */
export interface ImageConfig {
  readonly user: string;
  readonly workdir: string;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly healthcheck: readonly string[];
}

export interface Stage {
  readonly name: string;
  readonly image: string;
  readonly root: string;
  readonly env: Record<string, string>;
  workdir: string;
}

const DEADLINE_MS = 120_000;
/** Folders of the image that a stage writes to. On this host they lie below its root. */
const OWN_FOLDERS = /(?<![\w./-])\/(opt|home|usr\/local\/bin)\b/g;

/** The instructions, with lines joined that a backslash continues. */
export function instructionsOf(text: string): Instruction[] {
  const joined = text.replace(/^#.*\n/gm, '').replace(/\\\n\s*/g, '');
  return joined
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, word, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      if (word === undefined || rest === undefined) throw new Error(`no instruction: ${line}`);
      return { word, rest };
    });
}

export function configOf(instructions: readonly Instruction[]): ImageConfig {
  const from = instructions.findLastIndex(({ word }) => word === 'FROM');
  const last = (wanted: string) =>
    instructions.slice(from).findLast(({ word }) => word === wanted)?.rest ?? '';
  const words = (text: string): string[] => JSON.parse(text.slice(text.indexOf('[')) || '[]');
  return {
    user: last('USER'),
    workdir: last('WORKDIR'),
    entrypoint: words(last('ENTRYPOINT')),
    cmd: words(last('CMD')),
    healthcheck: words(last('HEALTHCHECK')),
  };
}

/** Takes every step, with files of `context` to copy. Returns the stages; the last one is the image. */
export async function buildStages(
  instructions: readonly Instruction[],
  { context, env }: { context: string; env: Readonly<Record<string, string>> },
): Promise<Stage[]> {
  const stages: Stage[] = [];
  for (const { word, rest } of instructions) {
    if (word === 'FROM') {
      stages.push(startStage(rest));
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`${word} stands before the first FROM`);
    if (word === 'WORKDIR') {
      stage.workdir = rest;
      mkdirSync(placeIn(stage, rest), { recursive: true });
    } else if (word === 'ENV' || word === 'ARG') {
      const [name = '', value = ''] = rest.split('=');
      stage.env[name] = value;
    } else if (word === 'COPY') copy(rest, stage, stages, context);
    else if (word === 'RUN') await run(rest, stage, env);
  }
  return stages;
}

function startStage(rest: string): Stage {
  const [image = '', , name = ''] = rest.split(' ');
  const root = mkdtempSync(join(tmpdir(), 'holdfast-image-'));
  // Another user runs what is in it.
  chmodSync(root, 0o755);
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  return { name, image, root, env: {}, workdir: '/' };
}

function copy(rest: string, stage: Stage, stages: readonly Stage[], context: string): void {
  const [, from, what = '', to = ''] = /^(?:--from=(\S+) )?(\S+) (\S+)$/.exec(rest) ?? [];
  const target = to.startsWith('/') ? placeIn(stage, to) : join(placeIn(stage, stage.workdir), to);
  const origin = stages.find(({ name }) => name === from);
  if (from !== undefined) {
    if (origin === undefined) throw new Error(`COPY --from=${from}: there is no such stage`);
    // Links stay as they are, as they do in an image.
    cpSync(placeIn(origin, what), target, { recursive: true, verbatimSymlinks: true });
    return;
  }
  const pattern = new RegExp(`^${basename(what).replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
  const files = readdirSync(join(context, dirname(what))).filter((file) => pattern.test(file));
  if (files.length === 0) throw new Error(`COPY ${what}: the context has no such file`);
  for (const file of files) cpSync(join(context, dirname(what), file), join(target, file));
}

async function run(
  line: string,
  stage: Stage,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const script = line.replace(OWN_FOLDERS, (path) => `${stage.root}${path}`);
  const options = {
    cwd: placeIn(stage, stage.workdir),
    env: { PATH: process.env.PATH, HOME: stage.root, ...stage.env, ...env },
    timeout: DEADLINE_MS,
  };
  await promisify(execFile)('sh', ['-ec', script], options).catch(({ code, stdout, stderr }) => {
    throw new Error(`RUN ${line} ended with ${code}: ${stdout}${stderr}`);
  });
}

/** Where a path of the image is on this host. */
export function placeIn({ root }: Stage, path: string): string {
  return join(root, path);
}
