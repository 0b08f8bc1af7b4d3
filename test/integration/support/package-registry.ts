import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../support/packed-package.ts';

/** A registry on this host, which serves these packages as they are installed in this repository. No other is found. */
export class PackageRegistry {
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-registry-'));

  readonly #names: readonly string[];

  private constructor(names: readonly string[]) {
    this.#names = names;
    this.#server = createServer(({ url = '' }, response) => this.#answer(url, response));
  }

  static async start(names: readonly string[]): Promise<PackageRegistry> {
    const registry = new PackageRegistry(names);
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #answer(url: string, response: ServerResponse): void {
    const [, name = '', file] =
      /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+))?$/.exec(decodeURIComponent(url)) ?? [];
    this.asked.push(name);
    if (!this.#names.includes(name)) return void response.writeHead(404).end('{}');
    try {
      if (file !== undefined) return void response.end(readFileSync(join(this.#folder, file)));
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(this.#about(name)));
    } catch {
      response.writeHead(404).end('{}');
    }
  }

  /** Packs it, and says what npm asks for. */
  #about(name: string): object {
    const folder = join(ROOT, 'node_modules', name);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const args = ['pack', folder, '--json', '--ignore-scripts', '--pack-destination', this.#folder];
    const [{ filename }] = JSON.parse(
      execFileSync('npm', args, { encoding: 'utf8', stdio: 'pipe' }),
    );
    const hash = createHash('sha512').update(readFileSync(join(this.#folder, filename)));
    const dist = {
      tarball: `${this.url}/${name}/-/${filename}`,
      integrity: `sha512-${hash.digest('base64')}`,
    };
    const { version } = manifest;
    return {
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { ...manifest, dist } },
    };
  }
}
