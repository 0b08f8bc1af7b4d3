/**
 * What a process can know of its own host, and no store can tell: which host it is, and which
 * processes live there.
 */

/** A process group that was started. Tells it from a later group of the same number. */
export interface GroupRecord {
  /** The id of the group, and of the process that leads it. */
  readonly group: number;
  /** When its leader was started, as the kernel counts; null if the system does not tell. */
  readonly startedTicks: number | null;
}

/** A lock on a name. It is free when this process, and all children that inherited it, are gone. */
export interface HostLock {
  /** For a child that is to keep the lock after this process is gone. */
  readonly fd: number;
  close(): void;
}

export interface Host {
  /**
   * This host since its boot, with the namespaces of its processes and locks. Two processes with
   * the same id can see each other, and cannot have the same lock. Null: the system does not tell.
   */
  readonly id: string | null;
  /** This process among all that this host has had since its boot. */
  readonly self: string;
  /** Whether that process exists: running, stopped or frozen. A zombie does not count. */
  isAlive(self: string): boolean;
  /** Null: another process has the lock. */
  lock(name: string): Promise<HostLock | null>;
  /**
   * Kills (SIGKILL) the rest of a group that ran for this session. False: some of it may still be
   * there. It could not be killed, or cannot be told from another group.
   */
  endGroup(record: GroupRecord, session: string): Promise<boolean>;
}
