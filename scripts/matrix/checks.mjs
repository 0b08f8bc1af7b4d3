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

/** `unit,smoke` as checks; an Error where one of them is none. */
export function chosenChecks(text) {
  if (text === undefined) return CHECKS;
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !CHECKS.some((check) => check.name === name));
  if (wrong === undefined) return CHECKS.filter(({ name }) => names.includes(name));
  const known = CHECKS.map(({ name }) => name).join(', ');
  throw new Error(`there is no check '${wrong}': --check takes ${known}`);
}

/** What vitest says of how many tests there were; null where it has not got that far. */
export function countOf(output) {
  return /^\s*Tests\s+(.+?)(?: \(\d+\))?\s*$/m.exec(output)?.[1] ?? null;
}
