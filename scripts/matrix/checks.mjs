import { GUESTS } from './guests.mjs';

/** What has to work on every Node: the tests that need nothing but it, and the package as its users have it. */
const integration = (...names) => [
  '--project',
  'integration',
  ...names.map((name) => `test/integration/${name}.test.ts`),
];

export const CHECKS = [
  { name: 'unit', about: 'the unit tests', args: ['--project', 'unit'] },
  {
    name: 'sqlite',
    about: 'the embedded store from several processes, with the SQLite that this Node has',
    args: integration('sqlite-processes', 'sqlite-faults'),
  },
  {
    name: 'package',
    about:
      'the tarball: what is in it, from ES modules and by require(esm), its types in strict projects',
    args: integration('package', 'package-imports', 'package-declarations'),
  },
  {
    name: 'smoke',
    about:
      'installed from it: the command, a lease on the embedded store, `holdfast up` until it is ready',
    args: integration('package-smoke'),
  },
];

/** `unit,jest` as checks and guests; an Error where one of them is none. */
export function chosenChecks(text) {
  const all = [...CHECKS, ...GUESTS];
  if (text === undefined) return all;
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !all.some((check) => check.name === name));
  if (wrong === undefined) return all.filter(({ name }) => names.includes(name));
  const known = all.map(({ name }) => name).join(', ');
  throw new Error(`there is no check '${wrong}': --check takes ${known}`);
}

/** What vitest says of how many tests there were; null where it has not got that far. */
export function countOf(output) {
  return /^\s*Tests\s+(.+?)(?: \(\d+\))?\s*$/m.exec(output)?.[1] ?? null;
}
