/** Which steps there are, and which of them are taken. What they do is in checks.mjs. */
export const STEPS = [
  { name: 'tree', about: 'nothing is changed that is not committed' },
  {
    name: 'version',
    about: 'package.json, package-lock.json and the first heading of CHANGELOG.md name one version',
  },
  { name: 'lockfile', about: 'package-lock.json names no host to install from' },
  { name: 'check', about: 'npm run check: format, lint, types, unused code, package' },
  { name: 'reference', about: 'npm run docs:reference changes nothing' },
  { name: 'docs', about: 'npm run docs:build' },
  { name: 'test', about: 'npm test and npm run test:all' },
  { name: 'requirements', about: 'npm run requirements, where there is one', isOptional: true },
  { name: 'matrix', about: 'npm run matrix: every Node that is supported' },
  { name: 'pack', about: 'npm pack, then publint and attw on the tarball' },
  { name: 'audit', about: 'npm audit --omit=dev knows nothing against what is installed with it' },
  {
    name: 'lean',
    about: 'npm install --omit=optional of the tarball: few packages, few bytes, nothing native',
  },
  {
    name: 'install',
    about:
      'npm install of the tarball in an empty project, npx holdfast --version, run and doctor there',
  },
];

/** The steps to take, in their order; an Error where a name is none. */
export function selectSteps({ only = [], skip = [] }, steps = STEPS) {
  const names = (given) => given.flatMap((text) => text.split(',')).map((name) => name.trim());
  const [wanted, left] = [names(only), names(skip)];
  const wrong = [...wanted, ...left].find((name) => !steps.some((step) => step.name === name));
  if (wrong !== undefined)
    throw new Error(`there is no step '${wrong}': ${steps.map(({ name }) => name).join(', ')}`);
  const chosen = steps.filter(
    ({ name }) => (wanted.length === 0 || wanted.includes(name)) && !left.includes(name),
  );
  if (chosen.length === 0) throw new Error('no step is left: --only and --skip name the same');
  return chosen;
}

/** Whether that was all of it: only then is it fit for release. */
export function isWhole(chosen, steps = STEPS) {
  return chosen.length === steps.length;
}
