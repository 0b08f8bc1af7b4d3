import { accessSync, constants, readFileSync, readlinkSync } from 'node:fs';
import { systemClock } from '../../core/clock.ts';
import type { GroupRecord, Host, HostLock } from './host.ts';
import { lockName, NO_LOCK, SOCKETS } from './host-lock.ts';
import { CAN_LOOK, hasInEnvironment, membersOf, statOf } from './proc.ts';
import { endGroup, recordedGroup } from './process-group.ts';

/** In the environment of a pipeline's command, and of all that it starts. */
const SESSION = 'HOLDFAST_SESSION_ID';

/**
 * The host that this process runs on. Where that is no Linux, or one that hides what it knows, `id` is null, and nothing can be known of others:
 * nobody counts as dead, everybody gets every lock, and so none proves anything, and no group counts as gone.
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
    if (!CAN_LOOK) return true;
    const [pid = '', startedTicks] = self.split('-');
    const found = statOf(pid);
    return found !== null && !found.isDead && found.startedTicks === Number(startedTicks);
  },

  async lock(name: string): Promise<HostLock | null> {
    return this.id === null ? NO_LOCK : lockName(name);
  },

  async endGroup(record: GroupRecord, session: string): Promise<boolean> {
    if (!CAN_LOOK) return false;
    const group = recordedGroup(record);
    if (!group.isAlive()) return true;
    return isOf(session, record) && endGroup(group, 0, systemClock);
  },
};

/** Read once, when it is needed: none of it changes while the process lives. */
let id: string | null | undefined;

function readId(): string | null {
  if (!CAN_LOOK) return null;
  try {
    // Without it there are no locks.
    accessSync(SOCKETS, constants.R_OK);
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const spaces = ['pid', 'net'].map((space) => readlinkSync(`/proc/self/ns/${space}`));
    return [boot, ...spaces, `uid:${process.getuid?.()}`].join('/');
  } catch {
    return null;
  }
}

/** Whether what is left of a group is known to have run for this session. */
function isOf(session: string, { group, startedTicks }: GroupRecord): boolean {
  if (startedTicks !== null && statOf(group)?.startedTicks === startedTicks) return true;
  return membersOf(group).some(({ pid }) => hasInEnvironment(pid, SESSION, session));
}
