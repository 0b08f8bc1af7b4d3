/** The history of one target or lease: from the log, page by page into the past, and from new events. */
import { effect, signal } from '@preact/signals';
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { HistoryQuery } from '../../../../src/client/operating-messages.ts';
import { client, messageOf } from '../../data/access.ts';
import { events, eventVersion } from '../../data/events.ts';
import { type Gap, gapsOf } from '../../data/gaps.ts';
import { since } from '../../data/since.ts';
import { Story, targetOf } from '../../data/story.ts';
import type { Tenure } from '../../data/tenures.ts';

const PAGE = 500;
/** So many pages are searched at a time; the server looks at some thousand entries for each. */
const MOST_PAGES = 6;
/** So many past holders are enough for a start. */
const ENOUGH = 12;

/** What it is: the log names targets, and leases by class and key. */
export interface Subject {
  readonly id: string;
  readonly isTarget: boolean;
}

/** Deaths, outages and quarantines are about everything. */
const AROUND = /^(member|fleet|store)\./;
/** Those whose keys are plain names; targets and workflows have views of their own. */
const PLAIN_CLASSES = new Set<unknown>(['lease', 'resource']);

export class Past {
  readonly story = new Story();
  readonly version = signal(0);
  readonly isReading = signal(false);
  readonly isWhole = signal(false);
  readonly trouble = signal<string | null>(null);
  readonly #subject: Subject;
  readonly #end = new AbortController();
  #before: string | undefined;
  #lastTaken: ApiEvent | undefined;

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  get isTarget(): boolean {
    return this.#subject.isTarget;
  }

  start(): void {
    const stop = effect(() => {
      eventVersion.value;
      this.#add(since(events, this.#lastTaken));
      this.#lastTaken = events.at(-1);
    });
    this.#end.signal.addEventListener('abort', stop);
    void this.readOlder();
  }

  stop(): void {
    this.#end.abort();
  }

  tenures(): readonly Tenure[] {
    return this.story.tenures(this.#subject.id);
  }

  gaps(tenures: readonly Tenure[]): readonly Gap[] {
    const { id } = this.#subject;
    return gapsOf(id, tenures, this.story.marksOf(id));
  }

  async readOlder(): Promise<void> {
    if (this.isReading.peek() || this.isWhole.peek()) return;
    const { signal } = this.#end;
    const enough = this.tenures().length + ENOUGH;
    this.isReading.value = true;
    try {
      for (let pages = 0; pages < MOST_PAGES && !this.isWhole.peek(); pages++) {
        const query = { ...this.#query(), limit: PAGE, before: this.#before };
        const page = await client.history(query, { signal });
        this.#before = page.before;
        this.isWhole.value = page.before === undefined;
        this.#add(page.events);
        if (this.tenures().length >= enough) break;
      }
      this.trouble.value = null;
    } catch (error) {
      if (!signal.aborted) this.trouble.value = messageOf(error);
    } finally {
      this.isReading.value = false;
    }
  }

  #query(): HistoryQuery {
    const { id, isTarget } = this.#subject;
    return isTarget ? { target: id } : { event: 'lease' };
  }

  #add(come: readonly ApiEvent[]): void {
    const about = come.flatMap((entry) => this.#about(entry) ?? []);
    if (about.length > 0 && this.story.add(about)) this.version.value++;
  }

  /** A story is of targets: a lease is told in it as if it were one. */
  #about(entry: ApiEvent): ApiEvent | null {
    const { id, isTarget } = this.#subject;
    if (AROUND.test(entry.event)) return entry;
    if (isTarget) return targetOf(entry) === id || entry.subject === id ? entry : null;
    const isOurs = entry.key === id && PLAIN_CLASSES.has(entry.leaseClass);
    return isOurs ? { ...entry, target: id } : null;
  }
}
