import { accessSync, constants, readFileSync, readlinkSync } from 'node:fs';
import { systemClock } from '../../core/clock.ts';
import type { GroupRecord, Host, HostLock } from './host.ts';
import { lockName, NO_LOCK, SOCKETS } from './host-lock.ts';
import { HAS_PROC, hasInEnvironment, membersOf, statOf } from './proc.ts';
import { endGroup, recordedGroup } from './process-group.ts';

/** A variable of a pipeline's command, and of all processes that it starts. */
const SESSION = 'HOLDFAST_SESSION_ID';

/**
 * The host that this process runs on. On other systems than Linux, or if /proc is hidden, `id` is
 * null and nothing is proven: no process counts as dead, every process gets every lock, and no
 * group counts as gone.
 */
export const systemHost: Host = {
  get id() {
    if (id === undefined) id = readId();
    return id;
  },

  get self() {
    return `${process.pid}-${statOf(process.pid)?.startedTicks ?? 0}`;
  },

  isAlive(self: string): boolean {
    if (!HAS_PROC) return true;
    const [pid = '', startedTicks] = self.split('-');
    const found = statOf(pid);
    return found !== null && !found.isDead && found.startedTicks === Number(startedTicks);
  },

  async lock(name: string): Promise<HostLock | null> {
    return this.id === null ? NO_LOCK : lockName(name);
  },

  async endGroup(record: GroupRecord, session: string): Promise<boolean> {
    if (!HAS_PROC) return false;
    const group = recordedGroup(record);
    if (!group.isAlive()) return true;
    return isOf(session, record) && endGroup(group, 0, systemClock);
  },
};

/** Read once, on first use: it does not change while the process lives. */
let id: string | null | undefined;

function readId(): string | null {
  if (!HAS_PROC) return null;
  try {
    // Without this file there are no locks.
    accessSync(SOCKETS, constants.R_OK);
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const spaces = ['pid', 'net'].map((space) => readlinkSync(`/proc/self/ns/${space}`));
    return [boot, ...spaces, `uid:${process.getuid?.()}`].join('/');
  } catch {
    return null;
  }
}

/** Whether the rest of a group is known to have run for this session. */
function isOf(session: string, { group, startedTicks }: GroupRecord): boolean {
  if (startedTicks !== null && statOf(group)?.startedTicks === startedTicks) return true;
  return membersOf(group).some(({ pid }) => hasInEnvironment(pid, SESSION, session));
}
