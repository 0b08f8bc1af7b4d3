import { expect, it } from 'vitest';
import { findMember } from '../../src/cli/fleet/members.ts';
import type { MemberView } from '../../src/fleet.ts';

const member = (name: string, hex: string): MemberView => ({
  ...{ id: `${name}-1794735731650762000-${hex}`, name, weight: 1, isDraining: false },
  ...{ isForeign: false, owned: 0, quota: 0, expiresInMs: 1, version: null },
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
  ['api', /'api' may be api-0000000a, api-0000000b\. Say which\./],
  ['worker', /may be worker-1-0000000c, worker-10-0000000d/],
  ['nobody', /no instance 'nobody' is alive/],
  ['', /no instance '' is alive/],
])('one that is not unique, or not there, is not guessed: %s', (text, message) => {
  expect(() => findMember(all, text)).toThrow(message);
});
