/** The operators' part of the API. It is not in `HoldfastClient`, so that that stays small. */
import { call } from './calls.ts';
import { type CallOptions, type ClientOptions, HoldfastClient, settingsOf } from './client.ts';
import { type FollowedFleet, fleetFeed, pictureOf, type WireFleet } from './fleet-feed.ts';
import type { PollSession } from './messages.ts';
import type {
  About,
  ApiDeadLetter,
  ApiLease,
  ApiMember,
  ApiSlot,
  Diagnosis,
  FleetPicture,
  HistoryPage,
  HistoryQuery,
  LeaseRevocation,
  LeaseState,
  LeasesPage,
  NewPollSession,
  ReportQuery,
  RevokeRequest,
  StageAction,
  StagePicture,
  TargetDetail,
  TransferOrder,
  WorkflowDetail,
  WorkflowsPage,
  WorkflowsQuery,
} from './operating-messages.ts';
import { type ClientRequest, type ClientSettings, withSearch } from './request.ts';
import { TargetsClient } from './targets-client.ts';

const API = '/api/v3';

export class OperatorClient extends HoldfastClient {
  /** List, add, change and move targets. */
  readonly targets: TargetsClient;
  readonly #settings: ClientSettings;

  constructor(options: ClientOptions) {
    super(options);
    this.#settings = settingsOf(options);
    this.targets = new TargetsClient(this.#settings);
  }

  /** The token and the server. */
  about(options?: CallOptions): Promise<About> {
    return this.#get('/about', options);
  }

  /** Exchanges the pass of an address that `holdfast up` printed for a token. It works once. */
  enter(pass: string, { signal }: CallOptions = {}): Promise<{ token: string }> {
    // The caller has no token yet.
    const settings = { ...this.#settings, token: undefined, retries: 0 };
    const sent = { method: 'POST', path: `${API}/enter`, body: { pass } } as const;
    return call(settings, sent, signal) as Promise<{ token: string }>;
  }

  async fleet(options?: CallOptions): Promise<FleetPicture> {
    return pictureOf(await this.#get<WireFleet>('/fleet', options));
  }

  /** The fleet, then its changes, until the signal fires. */
  fleetLive({ signal }: CallOptions = {}): AsyncGenerator<FollowedFleet, void, undefined> {
    return fleetFeed(this.#settings, signal);
  }

  async members(options?: CallOptions): Promise<readonly ApiMember[]> {
    return (await this.#get<{ members: readonly ApiMember[] }>('/members', options)).members;
  }

  /** The instance hands over all its targets and takes no new ones. */
  drain(member: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#post(`/members/${encodeURIComponent(member)}/drain`, undefined, options);
  }

  undrain(member: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#post(`/members/${encodeURIComponent(member)}/undrain`, undefined, options);
  }

  /** The same as `targets.get`. */
  target(id: string, options?: CallOptions): Promise<TargetDetail> {
    return this.targets.get(id, options);
  }

  /** The same as `targets.transfer`. */
  transfer(
    id: string,
    request: { to: string; reason?: string },
    options?: CallOptions,
  ): Promise<TransferOrder> {
    return this.targets.transfer(id, request, options);
  }

  /** The same as `targets.unpin`. */
  unpin(id: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.targets.unpin(id, options);
  }

  /** The same as `targets.revoke`. */
  revokeTarget(
    id: string,
    request: RevokeRequest,
    options?: CallOptions,
  ): Promise<LeaseRevocation> {
    return this.targets.revoke(id, request, options);
  }

  /** @deprecated Use `targets.add`. */
  addSession(session: NewPollSession, options?: CallOptions): Promise<PollSession> {
    return this.#once('/sessions', session, options);
  }

  /** @deprecated Use `targets.pause`. */
  pause(id: string, options?: CallOptions): Promise<PollSession> {
    return this.#post(`/sessions/${encodeURIComponent(id)}/pause`, undefined, options);
  }

  /** @deprecated Use `targets.resume`. */
  resume(id: string, options?: CallOptions): Promise<PollSession> {
    return this.#post(`/sessions/${encodeURIComponent(id)}/resume`, undefined, options);
  }

  /** @deprecated Use `targets.remove`. */
  async removeSession(id: string, options?: CallOptions): Promise<void> {
    const path = `/sessions/${encodeURIComponent(id)}`;
    await this.#call({ method: 'DELETE', path: API + path }, options);
  }

  /** Past events, the latest first. */
  history(query: HistoryQuery = {}, options?: CallOptions): Promise<HistoryPage> {
    const { event, ...rest } = query;
    const search = new URLSearchParams();
    for (const name of [event ?? []].flat()) search.append('event', name);
    for (const [name, value] of Object.entries(rest))
      if (value !== undefined) search.set(name, String(value));
    return this.#get(withSearch('/history', search), options);
  }

  /** What happened in a time, as one HTML page. */
  async report(query: ReportQuery = {}, { signal }: CallOptions = {}): Promise<string> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, String(value));
    const path = withSearch(`${API}/report`, search);
    const sent = { method: 'GET', path, isText: true } as const;
    return String(await call(this.#settings, sent, signal));
  }

  /** One page of held leases. */
  leases(query: { cursor?: string } = {}, options?: CallOptions): Promise<LeasesPage> {
    return this.#get(withSearch('/leases', new URLSearchParams(query)), options);
  }

  lease(key: string, options?: CallOptions): Promise<LeaseState> {
    return this.#get(`/leases/${encodeURIComponent(key)}`, options);
  }

  revoke(
    key: ApiLease['key'],
    request: RevokeRequest,
    options?: CallOptions,
  ): Promise<LeaseRevocation> {
    return this.#once(`/leases/${encodeURIComponent(key)}/revoke`, request, options);
  }

  /** One page, in order of id. */
  workflows(query: WorkflowsQuery = {}, options?: CallOptions): Promise<WorkflowsPage> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, String(value));
    return this.#get(withSearch('/workflows', search), options);
  }

  workflow(id: string, options?: CallOptions): Promise<WorkflowDetail> {
    return this.#get(`/workflows/${encodeURIComponent(id)}`, options);
  }

  /** Sent once: a second one is another signal. */
  signalWorkflow(
    id: string,
    request: { name: string; value?: unknown },
    options?: CallOptions,
  ): Promise<unknown> {
    return this.#once(`/workflows/${encodeURIComponent(id)}/signal`, request, options);
  }

  /** Runs the function of a failed workflow again. */
  restartWorkflow(id: string, options?: CallOptions): Promise<unknown> {
    return this.#once(`/workflows/${encodeURIComponent(id)}/restart`, undefined, options);
  }

  revokeWorkflow(id: string, request: { reason: string }, options?: CallOptions): Promise<unknown> {
    return this.#once(`/workflows/${encodeURIComponent(id)}/revoke`, request, options);
  }

  async deadLetters(options?: CallOptions): Promise<readonly ApiDeadLetter[]> {
    const page = await this.#get<{ deadLetters: readonly ApiDeadLetter[] }>(
      '/deadletters',
      options,
    );
    return page.deadLetters;
  }

  /** `id` as `deadLetters` gives it: `target/…`. */
  retryDeadLetter(id: string, options?: CallOptions): Promise<{ workflow: string }> {
    return this.#once(`/deadletters/${deadPath(id)}/retry`, undefined, options);
  }

  dropDeadLetter(id: string, options?: CallOptions): Promise<unknown> {
    return this.#once(`/deadletters/${deadPath(id)}/drop`, undefined, options);
  }

  async slots(options?: CallOptions): Promise<readonly ApiSlot[]> {
    return (await this.#get<{ slots: readonly ApiSlot[] }>('/slots', options)).slots;
  }

  doctor(options?: CallOptions): Promise<Diagnosis> {
    return this.#get('/doctor', options);
  }

  /** The instances of the demo; only where `about` has `stage`. */
  stage(options?: CallOptions): Promise<StagePicture> {
    return this.#get('/stage', options);
  }

  direct(name: string, action: StageAction, options?: CallOptions): Promise<StagePicture> {
    return this.#once(`/stage/${encodeURIComponent(name)}/${action}`, undefined, options);
  }

  #get<T>(path: string, options: CallOptions | undefined): Promise<T> {
    return this.#call<T>({ method: 'GET', path: API + path }, options);
  }

  #post<T>(path: string, body: unknown, options: CallOptions | undefined): Promise<T> {
    return this.#call<T>({ method: 'POST', path: API + path, body }, options);
  }

  /** Not retried: after a lost response, a retry could affect the next holder. */
  #once<T>(path: string, body: unknown, { signal }: CallOptions = {}): Promise<T> {
    const sent = { method: 'POST', path: API + path, body } as const;
    return call({ ...this.#settings, retries: 0 }, sent, signal) as Promise<T>;
  }

  #call<T>(sent: ClientRequest, options: CallOptions = {}): Promise<T> {
    return call(this.#settings, sent, options.signal) as Promise<T>;
  }
}

/** `target/id`; the id itself has no slash. */
function deadPath(id: string): string {
  const slash = id.lastIndexOf('/');
  return `${encodeURIComponent(id.slice(0, slash))}/${encodeURIComponent(id.slice(slash + 1))}`;
}
