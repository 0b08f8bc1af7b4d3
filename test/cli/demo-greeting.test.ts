import { expect, it } from 'vitest';
import { typeable } from '../../src/cli/commands/demo/greeting.ts';

it.each([
  ['postgres://db/app', 'postgres://ana@db/app', 'postgres://ana@db/app'],
  ['postgres://db/app', 'postgres://ana:secret@db/app', 'postgres://ana:…@db/app'],
  ['postgres://a:1,b:2/app', 'postgres://ana:s@a:1,b:2/app', 'postgres://ana:…@a:1,b:2/app'],
  ['redis://db:6379', 'redis://:secret@db:6379', 'redis://db:6379'],
  ['redis://db:6379', 'redis://db:6379', 'redis://db:6379'],
  ['sqlite:/tmp/a@b.db', 'sqlite:/tmp/a@b.db', 'sqlite:/tmp/a@b.db'],
  ['sqlite:/tmp/holdfast.db', undefined, 'sqlite:/tmp/holdfast.db'],
])('the demo shows the store %s of the address %s as %s', (name, address, shown) => {
  expect(typeable(name, address)).toBe(shown);
});
