/** Asks a server what operators want to know, and has it do what they decide. What is not in `HoldfastClient`, so that this stays small. */
import { call } from './calls.ts';
import { type CallOptions, type ClientOptions, clientParts, HoldfastClient } from './client.ts';
import { type ClientParts, type Sent, withSearch } from './exchange.ts';
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
  RevokeRequest,
  StageAction,
  StagePicture,
  TargetDetail,
  TransferOrder,
  WorkflowDetail,
  WorkflowsPage,
} from './operating-messages.ts';

const API = '/api/v3';

export class OperatorClient extends HoldfastClient {
  readonly #parts: ClientParts;

  constructor(options: ClientOptions) {
    super(options);
    this.#parts = clientParts(options);
  }

  /** Who asks, and whom. */
  about(options?: CallOptions): Promise<About> {
    return this.#get('/about', options);
  }

  /** Exchanges the pass of an address that `holdfast up` has printed for a token. It is good once. */
  enter(pass: string, { signal }: CallOptions = {}): Promise<{ token: string }> {
    // Who has no token yet can send none.
    const parts = { ...this.#parts, token: undefined, retries: 0 };
    const sent = { method: 'POST', path: `${API}/enter`, body: { pass } } as const;
    return call(parts, sent, signal) as Promise<{ token: string }>;
  }

  async fleet(options?: CallOptions): Promise<FleetPicture> {
    return pictureOf(await this.#get<WireFleet>('/fleet', options));
  }

  /** The same, and then what changes, until the signal fires. */
  fleetLive({ signal }: CallOptions = {}): AsyncGenerator<FollowedFleet, void, undefined> {
    return fleetFeed(this.#parts, signal);
  }

  async members(options?: CallOptions): Promise<readonly ApiMember[]> {
    return (await this.#get<{ members: readonly ApiMember[] }>('/members', options)).members;
  }

  /** Has an instance hand over everything it owns, and take nothing new. */
  drain(member: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#post(`/members/${encodeURIComponent(member)}/drain`, undefined, options);
  }

  undrain(member: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#post(`/members/${encodeURIComponent(member)}/undrain`, undefined, options);
  }

  target(id: string, options?: CallOptions): Promise<TargetDetail> {
    return this.#get(`/targets/${encodeURIComponent(id)}`, options);
  }

  /** Has its holder hand a target to another member, where it then stays. The target shows when it has. */
  transfer(
    id: string,
    request: { to: string; reason?: string },
    options?: CallOptions,
  ): Promise<TransferOrder> {
    return this.#post(`/targets/${encodeURIComponent(id)}/transfer`, request, options);
  }

  /** Leaves it to the plan again where a target is. */
  unpin(id: string, options?: CallOptions): Promise<{ changed: boolean }> {
    return this.#post(`/targets/${encodeURIComponent(id)}/unpin`, undefined, options);
  }

  /** Takes a target away from its holder. */
  revokeTarget(
    id: string,
    request: RevokeRequest,
    options?: CallOptions,
  ): Promise<LeaseRevocation> {
    return this.#once(`/targets/${encodeURIComponent(id)}/revoke`, request, options);
  }

  addSession(session: NewPollSession, options?: CallOptions): Promise<PollSession> {
    return this.#once('/sessions', session, options);
  }

  pause(id: string, options?: CallOptions): Promise<PollSession> {
    return this.#post(`/sessions/${encodeURIComponent(id)}/pause`, undefined, options);
  }

  resume(id: string, options?: CallOptions): Promise<PollSession> {
    return this.#post(`/sessions/${encodeURIComponent(id)}/resume`, undefined, options);
  }

  async removeSession(id: string, options?: CallOptions): Promise<void> {
    const path = `/sessions/${encodeURIComponent(id)}`;
    await this.#call({ method: 'DELETE', path: API + path }, options);
  }

  /** What has happened, the latest first. */
  history(query: HistoryQuery = {}, options?: CallOptions): Promise<HistoryPage> {
    const { event, ...rest } = query;
    const search = new URLSearchParams();
    for (const name of [event ?? []].flat()) search.append('event', name);
    for (const [name, value] of Object.entries(rest))
      if (value !== undefined) search.set(name, String(value));
    return this.#get(withSearch('/history', search), options);
  }

  /** One page of those that are held. */
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
  workflows(
    query: { cursor?: string; limit?: string } = {},
    options?: CallOptions,
  ): Promise<WorkflowsPage> {
    return this.#get(withSearch('/workflows', new URLSearchParams(query)), options);
  }

  workflow(id: string, options?: CallOptions): Promise<WorkflowDetail> {
    return this.#get(`/workflows/${encodeURIComponent(id)}`, options);
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

  /** Instances that are there to be killed; only where `about` says that there is a stage. */
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

  /** Asked once: asked again after an answer that was lost, it would be done to whoever came next. */
  #once<T>(path: string, body: unknown, { signal }: CallOptions = {}): Promise<T> {
    const sent = { method: 'POST', path: API + path, body } as const;
    return call({ ...this.#parts, retries: 0 }, sent, signal) as Promise<T>;
  }

  #call<T>(sent: Sent, options: CallOptions = {}): Promise<T> {
    return call(this.#parts, sent, options.signal) as Promise<T>;
  }
}

/** The name of its target, and its own id, which has no slash. */
function deadPath(id: string): string {
  const slash = id.lastIndexOf('/');
  return `${encodeURIComponent(id.slice(0, slash))}/${encodeURIComponent(id.slice(slash + 1))}`;
}
