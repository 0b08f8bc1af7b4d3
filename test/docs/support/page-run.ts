import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../../support/redis-server.ts';
import type { Finding } from '../../support/source-tree.ts';
import type { Consumer } from './consumer.ts';
import { dataFindings, fileFindings } from './data-blocks.ts';
import type { Block, Page } from './markdown.ts';
import { ModuleSource } from './module-source.ts';
import { PageRedis } from './page-redis.ts';
import { consoleFindings, scriptFindings } from './run-console.ts';
import { moduleFindings } from './run-module.ts';
import { Shell } from './shell.ts';

/** For a module, and for a command. */
const DEADLINE_MS = 60_000;

/** A module, or a block that is none: what is done one after the other. */
type Step = { readonly module: ModuleSource } | { readonly block: Block };

/** The steps of a page. Blocks that continue a module belong to it, unless a console stands between them. */
function stepsOf(page: Page): Step[] {
  const steps: (Block | Block[])[] = [];
  let open: Block[] | undefined;
  for (const block of page.blocks) {
    const isFile = block.file !== undefined;
    if (isCode(block) && isFile) steps.push([block]);
    else if (isCode(block) && block.continues && open) open.push(block);
    else if (isCode(block)) {
      open = [block];
      steps.push(open);
    } else {
      if (isShell(block) && !isFile) open = undefined;
      steps.push(block);
    }
  }
  return steps.map((step) =>
    Array.isArray(step) ? { module: new ModuleSource(step) } : { block: step },
  );
}

export function modulesOf(page: Page): ModuleSource[] {
  return stepsOf(page).flatMap((step) => ('module' in step ? [step.module] : []));
}

/** Does everything that stands on a page, in order, and says what is not as it is shown. */
export async function runPage(
  page: Page,
  consumer: Consumer,
  deadlineMs = DEADLINE_MS,
): Promise<Finding[]> {
  await using run = await PageRun.start(page, consumer, deadlineMs);
  const findings: Finding[] = [];
  for (const step of stepsOf(page)) findings.push(...(await run.do(step)));
  return findings;
}

interface Parts {
  readonly page: Page;
  readonly consumer: Consumer;
  readonly redis: PageRedis | undefined;
  readonly port: number;
  readonly deadlineMs: number;
}

class PageRun {
  readonly #consumer: Consumer;
  readonly #redis: PageRedis | undefined;
  readonly #port: number;
  readonly #deadlineMs: number;
  readonly #slug: string;
  readonly #files: Block[] = [];
  /** Of blocks that continue each other. */
  #folder = '';
  #folders = 0;
  #shell: Shell | undefined;
  /** The one in which something goes on running. */
  #busyShell: Shell | undefined;
  /** All that were opened. */
  readonly #shells: Shell[] = [];

  private constructor(parts: Parts) {
    this.#consumer = parts.consumer;
    this.#redis = parts.redis;
    this.#port = parts.port;
    this.#deadlineMs = parts.deadlineMs;
    this.#slug = parts.page.path.replace(/\W+/g, '-');
    // On a terminal, where readers are, curl draws no progress between the lines.
    writeFileSync(join(this.#home, '.curlrc'), 'silent\nshow-error\n');
  }

  static async start(page: Page, consumer: Consumer, deadlineMs: number): Promise<PageRun> {
    const texts = page.blocks.flatMap(({ before, text, after }) => [
      ...[...before, ...after].map((piece) => piece.text),
      text,
    ]);
    const [redis, port] = [await PageRedis.start(texts), await freePort()];
    return new PageRun({ page, consumer, redis, port, deadlineMs });
  }

  async do(step: Step): Promise<Finding[]> {
    const [first] = 'module' in step ? step.module.blocks : [step.block];
    if (first === undefined) return [];
    if (first.file !== undefined) return this.#addFile(first);
    if ('module' in step) {
      if (!step.module.isRun) return [];
      await this.#enter(first);
      return moduleFindings(step.module, this.#surroundings(), this.#deadlineMs);
    }
    if (first.notRun !== undefined) return [];
    if (!isShell(first)) return dataFindings(first, this.#consumer.subfolder(this.#slug));
    await this.#enter(first);
    return this.#runShell(first);
  }

  /** The folder of the block before, or one of its own, with the files of the page so far. */
  async #enter(block: Block): Promise<void> {
    if (!block.continues || this.#folder === '') {
      this.#folders += 1;
      this.#folder = this.#consumer.subfolder(this.#slug, String(this.#folders));
      this.#shell = undefined;
      // What still runs may be using it.
      if (this.#busyShell === undefined) await this.#redis?.renew();
      for (const file of this.#files) this.#write(file, this.#folder);
    }
    if (!isShell(block) || this.#shell !== undefined) return;
    const { folder, env } = this.#surroundings();
    this.#shell = new Shell(folder, env, this.#deadlineMs);
    this.#shells.push(this.#shell);
  }

  async #runShell(block: Block): Promise<Finding[]> {
    const shell = this.#shell;
    if (shell === undefined) throw new Error('no shell was opened');
    const rewrite = (text: string) => this.#rewrite(text);
    if (block.language === 'sh') return scriptFindings(block, shell, rewrite);
    const starts = /\bholdfast (up|demo)\b/;
    const isAnother = block.background || block.before.some(({ text }) => starts.test(text));
    if (isAnother) await this.#makeRoom(shell);
    const logFile = join(this.#consumer.subfolder(this.#slug), `background-${block.line}.log`);
    return consoleFindings(block, shell, { rewrite, logFile });
  }

  /** What goes on running does so until the page ends, or until another block begins something like it afresh. */
  async #makeRoom(shell: Shell): Promise<void> {
    if (this.#busyShell !== shell) {
      await this.#busyShell?.stop();
      rmSync(this.#portTaken, { recursive: true, force: true });
    }
    this.#busyShell = shell;
  }

  async #addFile(block: Block): Promise<Finding[]> {
    this.#files.push(block);
    const folder = this.#consumer.subfolder(this.#slug, 'files');
    this.#write(block, folder);
    if (block.continues && this.#folder !== '') this.#write(block, this.#folder);
    return block.notRun === undefined ? fileFindings(block, folder) : [];
  }

  #write(block: Block, folder: string): void {
    const path = join(folder, block.file ?? '');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${this.#rewrite(block.text)}\n`);
    if (block.language === 'sh') chmodSync(path, 0o755);
    // A test is run as it is, by who can: beside its JavaScript it would be run twice.
    if (block.language === 'ts' && !path.endsWith('.test.ts')) {
      const { code } = new ModuleSource([block]).javascript((text) => this.#rewrite(text));
      writeFileSync(path.replace(/ts$/, 'js'), code);
    }
  }

  #surroundings() {
    return {
      folder: this.#folder,
      env: {
        ...this.#consumer.env(this.#home),
        ...{ DOCS_PORT: String(this.#port), DOCS_PORT_TAKEN: this.#portTaken },
      },
      rewrite: (text: string) => this.#rewrite(text),
    };
  }

  get #home(): string {
    return this.#consumer.subfolder(this.#slug, 'home');
  }

  get #portTaken(): string {
    return join(this.#consumer.subfolder(this.#slug), 'port-taken');
  }

  /** Addresses and folders of this page in place of those that readers know. */
  #rewrite(text: string): string {
    const own = text.replace(/(127\.0\.0\.1|localhost):4747\b/g, `$1:${this.#port}`);
    const inside = own.replace(/(?<!\w)\/var\/lib\//g, `${this.#folder}/var/lib/`);
    return this.#redis?.rewrite(inside) ?? inside;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#shells.map((shell) => shell.stop()));
    await this.#redis?.stop();
    rmSync(join(this.#consumer.folder, this.#slug), { recursive: true, force: true });
  }
}

function isCode({ language }: Block): boolean {
  return language === 'ts' || language === 'js';
}

function isShell({ language }: Block): boolean {
  return language === 'console' || language === 'sh';
}
