/** What can be said about a release by reading: each gives null, or what is wrong and what to do about it. */

/** The first heading of the second level is the version, with nothing above that is yet to be released. */
export function versionProblem({ version, lockedVersion, changelog }) {
  if (lockedVersion !== version)
    return `package.json is at ${version}, package-lock.json at ${lockedVersion}: run npm install --package-lock-only`;
  const heading = /^## (.+)$/m.exec(changelog)?.[1]?.trim();
  if (heading === undefined) return `CHANGELOG.md has no heading: begin it with '## ${version}'`;
  // A date, or anything else in words, may follow the version.
  if (heading.split(/[\s,:]/)[0] === version) return null;
  return `package.json is at ${version}, but the first heading of CHANGELOG.md is '${heading}': name it '${version}', or set the version that it tells of with npm version --no-git-tag-version`;
}

/** Users decide which registry they install from: an address in the lockfile would decide for them. */
export function lockfileProblem(text) {
  const hosts = [...text.matchAll(/"resolved":\s*"(?:git\+)?\w+:\/\/([^/"]+)/g)].map(
    ([, host]) => host,
  );
  if (hosts.length === 0) return null;
  const names = [...new Set(hosts)].join(', ');
  return `package-lock.json names ${names}, ${hosts.length} times: npm install --package-lock-only leaves them out (.npmrc says so), after they were taken out`;
}

/**
 * What `npm audit --json` has answered: `clean`, `findings`, or `unasked` where it was not to be asked. Its exit code does
 * not tell the last two apart, so only a report that counts is taken for one.
 */
export function auditVerdict(output) {
  const report = parsed(output);
  const counts = report?.metadata?.vulnerabilities;
  if (counts === undefined) {
    const why = report?.message ?? report?.error?.summary;
    return { verdict: 'unasked', detail: why || output.trim().split('\n').at(-1) || 'no answer' };
  }
  const found = Object.entries(counts).filter(
    ([severity, count]) => severity !== 'total' && count > 0,
  );
  if (found.length === 0) return { verdict: 'clean', detail: 'nothing is known' };
  const severities = found.map(([severity, count]) => `${count} ${severity}`).join(', ');
  const names = Object.keys(report.vulnerabilities ?? {}).join(', ');
  return { verdict: 'findings', detail: `${severities}: ${names}` };
}

/** The most that an install without optional dependencies may have. */
const MAX_LEAN_PACKAGES = 20;
const MAX_LEAN_BYTES = 15_000_000;

/** What an install without optional dependencies has too much of; null if nothing. `files`: `{ path, size }`. */
export function leanProblem({ packages, files }) {
  const native = files.find(({ path }) => /\.(node|so|dylib|dll)$/.test(path));
  if (native !== undefined) return `the lean install has something native: ${native.path}`;
  if (packages > MAX_LEAN_PACKAGES)
    return `the lean install has ${packages} packages, and at most ${MAX_LEAN_PACKAGES} are promised`;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (bytes <= MAX_LEAN_BYTES) return null;
  return `the lean install has ${(bytes / 1e6).toFixed(1)} MB, and at most ${MAX_LEAN_BYTES / 1e6} are promised`;
}

function parsed(output) {
  try {
    return JSON.parse(output);
  } catch {
    return undefined;
  }
}

/** A step without its script has not passed, and npm would not say it well. */
export function scriptProblem(name, scripts, isThere) {
  const advice = 'add it, or leave this step out with --skip';
  if (scripts[name] === undefined) return `package.json has no script '${name}': ${advice}`;
  const files = [...scripts[name].matchAll(/\bnode (\S+\.mjs)/g)].map(([, file]) => file);
  const missing = files.find((file) => !isThere(file));
  if (missing === undefined) return null;
  return `npm run ${name} is ${missing}, which is not there: ${advice}`;
}

/** The one command that publishes what was checked: those very bytes. */
export function publishCommand(tarball) {
  return `npm publish ${tarball}`;
}
