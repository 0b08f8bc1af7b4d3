import { get } from 'node:http';
import { describe, expect, it } from 'vitest';
import { FENCE_HEADER } from '../../src/lease/fence.ts';
import { hostMs } from './host-clock.ts';
import { overlaps } from './poll-record.ts';
import { INSTANCE_HEADER, STARTED_HEADER, TargetServer } from './target-server.ts';
import { until } from './until.ts';

interface Asking {
  fence?: number;
  signal?: AbortSignal;
}

/** Polls as a member does: says who it is and when it began. */
function ask(url: string, instance: string, { fence, signal }: Asking = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = {
      [INSTANCE_HEADER]: instance,
      [STARTED_HEADER]: String(process.hrtime.bigint()),
      ...(fence !== undefined && { [FENCE_HEADER]: String(fence) }),
    };
    get(url, { headers, ...(signal && { signal }) }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    }).once('error', reject);
  });
}

describe('the target server', () => {
  it('records who polled what, with which fence, from when to when', async () => {
    await using server = await TargetServer.start({ latencyMs: 30 });
    const fromMs = hostMs();
    expect(await ask(server.urlOf('a:b~1'), 'one', { fence: 7 })).toBe(200);
    const toMs = hostMs();
    expect(server.polls).toMatchObject([{ target: 'a:b~1', instance: 'one', fence: 7 }]);
    const [poll] = server.polls;
    expect(poll?.startMs).toBeGreaterThanOrEqual(fromMs);
    expect(poll?.arrivedMs).toBeGreaterThan(poll?.startMs ?? 0);
    // Timers of Node count in whole milliseconds, and may be one short.
    expect((poll?.endMs ?? 0) - (poll?.arrivedMs ?? 0)).toBeGreaterThan(28);
    expect(poll?.endMs).toBeLessThanOrEqual(toMs);
  });

  it('shows two who poll at once, and not those who poll in turn', async () => {
    await using server = await TargetServer.start();
    await ask(server.urlOf('t'), 'one');
    await ask(server.urlOf('t'), 'two');
    expect(overlaps(server.polls)).toEqual([]);
    await Promise.all([ask(server.urlOf('t'), 'one'), ask(server.urlOf('t'), 'two')]);
    expect(overlaps(server.polls)).toHaveLength(1);
  });

  it('ends the poll of one that hangs up, and lets a poll go on for as long as it is told to', async () => {
    await using server = await TargetServer.start();
    server.slow('t', Number.POSITIVE_INFINITY);
    const abort = new AbortController();
    const asked = ask(server.urlOf('t'), 'one', { signal: abort.signal });
    await until(() => server.polls.length === 1, { what: 'the poll to arrive' });
    expect(server.polls).toMatchObject([{ fence: null, endMs: Number.POSITIVE_INFINITY }]);
    const abortedMs = hostMs();
    abort.abort();
    await expect(asked).rejects.toThrow();
    await until(() => server.polls[0]?.endMs !== Number.POSITIVE_INFINITY, { what: 'its end' });
    expect(server.polls[0]?.endMs).toBeGreaterThan(abortedMs);
  });

  it('takes no poll from a stranger', async () => {
    await using server = await TargetServer.start();
    const answer = await fetch(server.urlOf('t'));
    expect(answer.status).toBe(400);
    expect(server.polls).toEqual([]);
  });
});
