import { expect, it } from 'vitest';
import { findMember, memberTable } from '../../src/cli/commands/fleet/members.ts';
import type { MemberView } from '../../src/fleet/watch/fleet.ts';

const member = (name: string, hex: string): MemberView => ({
  ...{ id: `${name}-1794735731650762000-${hex}`, name, weight: 1, isDraining: false },
  ...{ isForeign: false, owned: 0, quota: 0, expiresInMs: 1, version: null },
  ...{ beatTtlMs: null, startedAt: null, vitals: null },
});

const api = member('api', '0000000a');
const apiToo = member('api', '0000000b');
const worker = member('worker-1', '0000000c');
const worker10 = member('worker-10', '0000000d');
const all = [api, apiToo, worker, worker10];

it.each([
  [api.id, api],
  ['api-0000000b', apiToo],
  ['worker-1', worker],
  ['worker-10', worker10],
  ['worker-10-', worker10],
  ['worker-1-0', worker],
])('an instance is found by its id, its name, or as much of it as is unique: %s', (text, found) => {
  expect(findMember(all, text)).toBe(found);
});

it.each([
  ['api', /'api' matches several instances: api-0000000a, api-0000000b\. Give a longer name\./],
  ['worker', /several instances: worker-1-0000000c, worker-10-0000000d/],
  ['nobody', /no instance 'nobody' is alive/],
  ['', /no instance '' is alive/],
])('one that is not unique, or not there, is not guessed: %s', (text, message) => {
  expect(() => findMember(all, text)).toThrow(message);
});

const doingWell: MemberView = {
  ...api,
  ...{ owned: 4, quota: 5, version: '1.2.3', expiresInMs: 28_000, beatTtlMs: 30_000 },
  startedAt: 1_794_735_731_651,
  vitals: {
    ...{ ttlMs: 30_000, renewEveryMs: 10_000, loopDelayMs: 0 },
    ...{ renewP50Ms: 3, renewP99Ms: 12.5 },
  },
};
const silent: MemberView = { ...worker, isForeign: true, expiresInMs: 12_000 };
const nowMs = doingWell.startedAt ?? 0;

it('members are shown with the age of their heartbeats, how long they run and how fast they renew', () => {
  expect(memberTable([doingWell, silent], nowMs + 3_600_000)).toBe(
    [
      'NAME               STATE    OWNS  SHARE  WEIGHT  HEARTBEAT     UPTIME  RENEW P99  VERSION  ID',
      `api-0000000a       up       4     5      1       2 s ago       1 h     13 ms      1.2.3    ${api.id}`,
      `worker-1-0000000c  foreign  0     -      -       ends in 12 s  -       -          -        ${worker.id}`,
      '',
    ].join('\n'),
  );
});

it('what there is no room for is left out', () => {
  const lines = memberTable([doingWell], nowMs, 90).split('\n');
  expect(lines[0]).toBe('NAME          STATE  OWNS  SHARE  WEIGHT  HEARTBEAT  VERSION  ID');
  expect(lines[1]).toContain(api.id);
});
