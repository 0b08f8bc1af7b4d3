import { call } from './calls.ts';
import type { CallOptions } from './client.ts';
import type { Target } from './messages.ts';
import type {
  LeaseRevocation,
  NewTarget,
  RevokeRequest,
  TargetChange,
  TargetDetail,
  TargetsPage,
  TransferOrder,
} from './operating-messages.ts';
import { type ClientRequest, type ClientSettings, withSearch } from './request.ts';

const PATH = '/api/v3/targets';

/** The targets of the fleet: `operator.targets`. */
export class TargetsClient {
  readonly #settings: ClientSettings;

  constructor(settings: ClientSettings) {
    this.#settings = settings;
  }

  /** All targets, in order of id, over as many pages as needed. */
  async *list({
    limit,
    signal,
  }: { readonly limit?: number | undefined } & CallOptions = {}): AsyncGenerator<
    Target,
    void,
    undefined
  > {
    const search = new URLSearchParams();
    if (limit !== undefined) search.set('limit', String(limit));
    let page: TargetsPage;
    do {
      page = await this.#call('GET', withSearch('', search), undefined, { signal });
      yield* page.targets;
      search.set('cursor', page.cursor ?? '');
    } while (page.cursor !== undefined);
  }

  /** The target with its owner and its last polls. */
  get(id: string, options?: CallOptions): Promise<TargetDetail> {
    return this.#call('GET', pathOf(id), undefined, options);
  }

  /** Not retried: after a lost response, a retry would be refused because the id is in use. */
  add(target: NewTarget, options?: CallOptions): Promise<Target> {
    return this.#callOnce('', target, options);
  }

  /** Fields that are absent stay as they are; `null` removes one. */
  change(id: string, change: TargetChange, options?: CallOptions): Promise<Target> {
    return this.#call('PATCH', pathOf(id), change, options);
  }

  /** No instance polls it until it is resumed. */
  pause(id: string, options?: CallOptions): Promise<Target> {
    return this.#call('POST', pathOf(id, 'pause'), undefined, options);
  }

  resume(id: string, options?: CallOptions): Promise<Target> {
    return this.#call('POST', pathOf(id, 'resume'), undefined, options);
  }

  async remove(id: string, options?: CallOptions): Promise<void> {
    await this.#call('DELETE', pathOf(id), undefined, options);
  }

  /** Moves a target to another instance, where it stays. `get` shows when its owner has changed. */
  transfer(
    id: string,
    request: { readonly to: string; readonly reason?: string | undefined },
    options?: CallOptions,
  ): Promise<TransferOrder> {
    return this.#call('POST', pathOf(id, 'transfer'), request, options);
  }

  /** The plan places the target again. */
  unpin(id: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#call('POST', pathOf(id, 'unpin'), undefined, options);
  }

  /** Not retried: after a lost response, a retry could revoke the next owner. */
  revoke(id: string, request: RevokeRequest, options?: CallOptions): Promise<LeaseRevocation> {
    return this.#callOnce(pathOf(id, 'revoke'), request, options);
  }

  #call<T>(
    method: ClientRequest['method'],
    path: string,
    body: unknown,
    { signal }: CallOptions = {},
  ): Promise<T> {
    return call(this.#settings, { method, path: PATH + path, body }, signal) as Promise<T>;
  }

  #callOnce<T>(path: string, body: unknown, { signal }: CallOptions = {}): Promise<T> {
    const request = { method: 'POST', path: PATH + path, body } as const;
    return call({ ...this.#settings, retries: 0 }, request, signal) as Promise<T>;
  }
}

function pathOf(id: string, action?: string): string {
  return `/${encodeURIComponent(id)}${action === undefined ? '' : `/${action}`}`;
}
