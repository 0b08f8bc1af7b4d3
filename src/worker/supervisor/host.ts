/**
 * What a process can know of its own host, that no store can tell it: which host that is, who lives there, and that somebody does not any more.
 */

/** A process group that was started, so that it can be told from a later one of the same number. */
export interface GroupRecord {
  /** The id of the group, and of the process that leads it. */
  readonly group: number;
  /** When its leader was started, as the kernel counts; null where that can not be told. */
  readonly startedTicks: number | null;
}

/** What a name was locked with: it is given back when this process, and whoever it gave it to, are gone. */
export interface HostLock {
  /** For a child that is to keep the lock when this process is gone. */
  readonly fd: number;
  close(): void;
}

export interface Host {
  /**
   * This host since it was booted, and the namespaces in which its processes and locks are counted. Two processes with the same can
   * see each other, and a lock that one of them has the other can not get. Null where none of this can be known.
   */
  readonly id: string | null;
  /** This process among all that this host has had since it was booted. */
  readonly self: string;
  /** Whether that process still exists: running, stopped or frozen. A dead one that nobody has buried does not. */
  isAlive(self: string): boolean;
  /** Null: another has it. */
  lock(name: string): Promise<HostLock | null>;
  /**
   * Kills what is left of a group (SIGKILL), which ran for this session. False if it may still be there: it could not be killed, or it
   * can not be told whether it is the same.
   */
  endGroup(record: GroupRecord, session: string): Promise<boolean>;
}
