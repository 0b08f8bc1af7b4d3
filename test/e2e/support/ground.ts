/** A fleet of real processes on one file, one of which serves the page. */
import { join } from 'node:path';
import { OperatorClient } from '../../../src/client/index.ts';
import type { Holdfast } from '../../../src/index.ts';
import { privateFolder } from '../../integration/support/cli.ts';
import { openAt } from '../../integration/support/holdfasts.ts';
import { startUp, type UpInstance } from '../../integration/support/instances.ts';
import { TargetServer } from '../../support/target-server.ts';
import { until } from '../../support/until.ts';
import type { Visit } from './browser.ts';

const START_MS = 30_000;
export const ADMIN = 'the-token-of-the-administrator';
export const READER = 'the-token-of-a-reader';

export interface GroundOptions {
  /** Those that poll; the page is served by one more, which does not. */
  readonly members?: readonly string[];
  readonly targets?: readonly string[];
  /** What else the configuration of all of them says. */
  readonly config?: string;
  /** Of the one that serves the page. */
  readonly roles?: string;
}

export class Ground implements AsyncDisposable {
  readonly at: { readonly url: string };
  readonly url: string;
  readonly holdfast: Holdfast;
  readonly members: ReadonlyMap<string, UpInstance>;
  readonly client: OperatorClient;
  readonly #server: TargetServer;
  readonly #door: UpInstance;

  private constructor(
    parts: Pick<Ground, 'at' | 'url' | 'holdfast' | 'members'>,
    server: TargetServer,
    door: UpInstance,
  ) {
    this.at = parts.at;
    this.url = parts.url;
    this.holdfast = parts.holdfast;
    this.members = parts.members;
    this.client = new OperatorClient({ url: this.url, token: ADMIN });
    this.#server = server;
    this.#door = door;
  }

  static async start(options: GroundOptions = {}): Promise<Ground> {
    const { members = ['ana', 'ben'], targets = [], config = '', roles = 'api' } = options;
    const at = { url: `sqlite:${join(privateFolder(), 'holdfast.db')}` };
    const server = await TargetServer.start();
    // What a test does is for the page to see, as if an instance had done it.
    const holdfast = await openAt(at, { history: 'on' });
    await holdfast.sessions.addAll(targets.map((id) => ({ id, url: server.urlOf(id) })));
    const tokens = JSON.stringify([
      { id: 'admin', token: ADMIN, scope: 'v3:admin' },
      { id: 'reader', token: READER, scope: 'v3:read' },
    ]);
    const door = startUp('page', {
      at,
      roles,
      config: `api: { port: 0, tokens: ${tokens} }, ${config}`,
    });
    const started = members.map((name) => [name, startUp(name, { at, config })] as const);
    const url = String((await door.says(/^listens on /, START_MS)).url);
    const ground = new Ground({ at, url, holdfast, members: new Map(started) }, server, door);
    await Promise.all(started.map(([, up]) => up.says(/^is up/, START_MS)));
    await door.says(/^is up/, START_MS);
    await ground.settled();
    return ground;
  }

  /** Every target has an owner. */
  async settled(): Promise<void> {
    await until(
      async () => {
        const { targets } = await this.holdfast.fleet.view();
        return targets.every(({ reason }) => reason === 'kept');
      },
      { what: 'every target to have its owner', deadlineMs: START_MS, every: 50 },
    );
  }

  idOf(name: string): string {
    return this.members.get(name)?.id ?? '';
  }

  /** Goes to a view with a token, as somebody who has been there before. */
  async visit({ page }: Visit, place = '', token = ADMIN, url = this.url): Promise<void> {
    await page.addInitScript((kept) => sessionStorage.setItem('holdfast.token', kept), token);
    await page.goto(`${url}/#/${place}`);
    await page.locator('[data-age=live]').waitFor();
  }

  /** The instance that serves the page, and nothing else. */
  get door(): UpInstance {
    return this.#door;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [this.#door, ...this.members.values()];
    await Promise.all(all.map((up) => up[Symbol.asyncDispose]()));
    await this.holdfast.close();
    await this.#server[Symbol.asyncDispose]();
  }
}
