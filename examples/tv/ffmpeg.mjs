/** Makes sure that there is an ffmpeg: installs Debian's package where that is ours to do, else says what to type. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL_DEADLINE_MS = 600_000;
const INSTALL = `
set -e
apt-get -o DPkg::Lock::Timeout=120 update
apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends ffmpeg
`;
const ADVICE =
  'Install it (Debian and Ubuntu: `apt-get install ffmpeg` as root, macOS: `brew install ffmpeg`), and start this again.';

/** What stands in the way; null when there is one. */
export function requireFfmpeg(say) {
  if (isOnPath('ffmpeg')) return null;
  if (process.getuid?.() !== 0 || !isOnPath('apt-get'))
    return `There is no ffmpeg on the PATH. ${ADVICE}`;
  say('There is no ffmpeg on the PATH: installing it with apt-get, which takes a minute or two …');
  const { status, error, stdout, stderr } = spawnSync('sh', ['-c', INSTALL], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    encoding: 'utf8',
    timeout: INSTALL_DEADLINE_MS,
  });
  if (status === 0 && isOnPath('ffmpeg')) return null;
  const output = error?.message ?? `${stdout}${stderr}`.trim().split('\n').slice(-10).join('\n');
  return `Installing ffmpeg failed. ${ADVICE}\n${output}`;
}

function isOnPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
