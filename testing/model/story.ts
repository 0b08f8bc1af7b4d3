/** Tells what `lease.pml` did: as a short story, and as a trace for `rules.ts`. */
import type { ModelEvent } from './rules.ts';

/** One step as the model says it: what, client, key, and one more number. */
export interface ModelStep {
  readonly what: StepName;
  readonly client: number;
  readonly key: number;
  readonly more: number;
}

/** In the order of the `mtype` in `lease.pml`; spin numbers them from the last one on. */
const NAMES = [
  'ACQUIRE',
  'CLAIM',
  'RENEW',
  'RELEASE',
  'TRANSFER',
  'REVOKE',
  'KEEPALIVE',
  'DONE',
  'REFUSED',
  'tick',
  'ask',
  'grant',
  'refuse',
  'renewed',
  'restored',
  'released',
  'transferred',
  'revoked',
  'kept',
  'believed',
  'ended',
  'stray',
  'unanswered',
  'examined',
  'lost',
  'failedOver',
  'failedBack',
  'passed',
  'committed',
] as const;
type StepName = (typeof NAMES)[number];

/** What a tick of the model stands for. */
export const TICK_MS = 15_000;
/** In ticks: the longest TTL, and so the bound. */
const LONG = 2;
const WINDOW = 1;
const CLIENTS = ['ana', 'ben', 'cem', 'an operator'];
const ASKED: Partial<Record<StepName, string>> = {
  ACQUIRE: 'asks for',
  CLAIM: 'claims',
  RENEW: 'renews',
  RELEASE: 'releases',
  TRANSFER: 'hands over',
  REVOKE: 'revokes',
  KEEPALIVE: 'renews the keepalive that has',
};
const FOUND = ['is as it was', 'is forgotten', 'has no lease'].concat(
  ['ana', 'ben', 'cem'].map(held),
);

/** Reads what spin has printed. */
export function stepsOf(output: string): ModelStep[] {
  return [...output.matchAll(/STEP (\d+) (\d+) (\d+) (\d+)/g)].map(([, ...numbers]) => {
    const [what = 0, client = 0, key = 0, more = 0] = numbers.map(Number);
    return { what: nameOf(what), client, key, more };
  });
}

/** Who did what at which time; each line one step, and the last line what is wrong. */
export function tell(steps: readonly ModelStep[]): string[] {
  const lines: string[] = [];
  let atMs = 0;
  for (const step of steps) {
    if (step.what === 'tick') atMs += TICK_MS;
    else lines.push(`${`${atMs / 1_000} s`.padStart(5)}  ${sentence(step, atMs)}`);
  }
  return [...lines, `       ✗ ${wrong(steps)}`];
}

function sentence({ what, client, key, more }: ModelStep, atMs: number): string {
  const who = CLIENTS[client] ?? '';
  const k = `key ${key + 1}`;
  const seconds = (ticks: number) => `${(ticks * TICK_MS) / 1_000} s`;
  const ttl = seconds(more % 2 === 1 ? LONG : 1);
  const until = seconds(more + atMs / TICK_MS);
  const asked = ASKED[nameOf(more)] ?? '';
  const told: Partial<Record<StepName, string>> = {
    ask: `${who} ${asked} ${k}: the request is sent`,
    grant: `the store grants ${k} to ${who} for ${ttl}`,
    refuse: `the store refuses that ${who} ${asked} ${k}`,
    renewed: `the store renews ${k} for ${who}, for ${ttl}`,
    restored: `the store has lost ${k}, and restores it for ${who}, for ${ttl}`,
    released: `the store ends the lease on ${k}, as ${who} asked`,
    transferred: `the store hands ${k} over from ${who} to ${CLIENTS[more % 4]}`,
    revoked: `the store revokes ${k}, which ${who} has`,
    kept: `the store renews the keepalive of ${who} for ${ttl}`,
    believed: `${who} hears of it, and works under ${k} until ${until}`,
    ended: `${who} hears that it has lost ${k}`,
    stray: `${who} waits no longer; its request is still on its way`,
    unanswered: `${who} gets no answer`,
    examined: `${who} examines the store`,
    lost: 'the store loses its data',
    failedOver: `the store fails over: ${foundBy(key, more)}`,
    failedBack: `the address leads back to the old server: ${foundBy(key, more)}`,
    passed: `a transaction of ${who} passes the guard of ${k}`,
    committed: `the transaction commits`,
  };
  return told[what] ?? what;
}

function wrong(steps: readonly ModelStep[]): string {
  const last = steps.at(-1);
  if (last?.what === 'committed') return 'it commits although a higher fence was granted since';
  if (last?.what === 'grant')
    return `${CLIENTS[last.client]} is granted the fence that the lease before had`;
  const believers = believersOf(steps).filter(({ key }) => key === last?.key);
  const names = believers.map(({ client }) => CLIENTS[client]).join(' and ');
  return `${names} both work under key ${(last?.key ?? 0) + 1}`;
}

function held(who: string): string {
  return `is held by ${who}, as once before`;
}

function foundBy(first: number, second: number): string {
  return `key 1 ${FOUND[first]}${second === 0 ? '' : `, key 2 ${FOUND[second]}`}`;
}

function nameOf(number: number): StepName {
  return NAMES[NAMES.length - number] ?? 'tick';
}

interface Believer {
  readonly client: number;
  readonly key: number;
  readonly until: number;
}

/** Who believes in which key after these steps. */
function believersOf(steps: readonly ModelStep[]): Believer[] {
  const believers = new Map<string, Believer>();
  let now = 0;
  let asked: ModelStep | undefined;
  for (const step of steps) {
    const { what, client, key, more } = step;
    if (what === 'tick') now++;
    if (what === 'ask') asked = step;
    if (what === 'believed') believers.set(`${client} ${key}`, { client, key, until: now + more });
    const isGivenUp = asked === step && ['TRANSFER'].includes(nameOf(more));
    if (what === 'ended' || isGivenUp) believers.delete(`${client} ${key}`);
  }
  return [...believers.values()].filter(({ until }) => until > now);
}

/** The same as a trace: what the rules in `rules.ts` judge. */
export function traceOf(steps: readonly ModelStep[]): ModelEvent[] {
  const trace = new TraceReading();
  for (const step of steps) trace.take(step);
  // Whoever believes in a lease may work under it.
  const last = steps.at(-1);
  for (const { client, key } of believersOf(steps))
    if (last?.what === 'believed' && key === last.key) trace.act(client, key);
  return trace.events;
}

/** Gives each grant a fence, and each tick its time. */
class TraceReading {
  readonly events: ModelEvent[] = [];
  #atMs = 0;
  #fence = 0;
  #guard = 0;
  /** By key, and by client and key: the fence of the last grant. */
  readonly #records = new Map<string, number>();
  readonly #fences = new Map<string, number>();

  act(client: number, key: number): void {
    const fence = this.#fences.get(`${client} ${key}`) ?? 0;
    this.events.push({ ...this.#at(client, key), what: 'acted', fence });
  }

  take({ what, client, key, more }: ModelStep): void {
    const at = this.#at(client, key);
    const record = this.#records.get(at.key) ?? 0;
    const ttlMs = (more % 2 === 1 ? LONG : 1) * TICK_MS;
    const own = `${client} ${key}`;
    const add = (event: ModelEvent) => void this.events.push(event);
    if (what === 'tick') this.#atMs += TICK_MS;
    else if (what === 'grant') {
      const fence = more >= 4 ? record : this.#mint(at.key);
      this.#fences.set(own, fence);
      add({ ...at, what: 'granted', fence, ttlMs, isClaim: (more & 2) !== 0 });
    } else if (what === 'renewed')
      add({ ...at, what, ttlMs, ...((more & 2) !== 0 && { attachedTo: at.client }) });
    else if (what === 'restored') {
      const fence = this.#fences.get(own) ?? 0;
      this.#records.set(at.key, fence);
      add({ ...at, what, fence, ttlMs });
    } else if (what === 'released') add({ ...at, what, fence: record });
    else if (what === 'transferred') {
      const newFence = more >= 4 ? record : this.#mint(at.key);
      const to = CLIENTS[more % 4] ?? '';
      add({ ...at, what, fence: record, newFence, to, windowMs: WINDOW * TICK_MS });
    } else if (what === 'revoked')
      add({ ...at, what, newFence: this.#mint(at.key), isForced: false });
    else if (what === 'kept') add({ what, atMs: at.atMs, keepalive: at.client, ttlMs });
    else if (what === 'believed') {
      const fence = this.#fences.get(own) ?? 0;
      add({ ...at, what, fence, untilMs: at.atMs + more * TICK_MS });
    } else if (what === 'ended') add({ ...at, what, fence: this.#fences.get(own) ?? 0 });
    else if (what === 'passed') this.#guard = record;
    else if (what === 'committed') add({ ...at, what, fence: this.#guard });
    else if (what === 'lost' || what === 'failedOver' || what === 'failedBack')
      add({ what: 'lost', atMs: at.atMs });
  }

  #at(client: number, key: number) {
    return { atMs: this.#atMs, key: `key ${key + 1}`, client: CLIENTS[client] ?? '' };
  }

  #mint(key: string): number {
    this.#fence++;
    this.#records.set(key, this.#fence);
    return this.#fence;
  }
}
