import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Whether what was built is missing, or older than what it is built from. Folders count, too: a deleted file leaves its trace there. */
export function isStale(root) {
  const built = statSync(join(root, 'dist'), { throwIfNoEntry: false });
  if (built === undefined) return true;
  const sources = ['src', 'testing', 'dashboard'].map((folder) => join(root, folder));
  const files = sources.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const settings = ['package.json', 'tsconfig.json', 'tsconfig.build.json'].map((file) =>
    join(root, file),
  );
  const builders = ['build.mjs', 'bundle.mjs'].map((file) => join(root, 'scripts', file));
  return [...sources, ...files, ...settings, ...builders].some(
    (path) => statSync(path).mtimeMs > built.mtimeMs,
  );
}
