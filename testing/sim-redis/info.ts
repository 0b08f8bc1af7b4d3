/** What a server says about itself: as much of it as Holdfast reads. */
export interface ServerState {
  readonly runId: string;
  readonly replicationId: string;
  readonly upSeconds: number;
  readonly isReplica: boolean;
  readonly appendOnly: boolean;
  readonly evictionPolicy: string;
}

export function infoText(state: ServerState): string {
  const { runId, replicationId, upSeconds, isReplica, appendOnly, evictionPolicy } = state;
  const primary = isReplica ? ['master_host:127.0.0.1', 'master_port:6379'] : [];
  const lines = [
    '# Server',
    'redis_version:7.0.15',
    `run_id:${runId}`,
    `uptime_in_seconds:${upSeconds}`,
    '',
    '# Memory',
    `maxmemory_policy:${evictionPolicy}`,
    '',
    '# Persistence',
    `aof_enabled:${appendOnly ? 1 : 0}`,
    '',
    '# Replication',
    `role:${isReplica ? 'slave' : 'master'}`,
    ...primary,
    'connected_slaves:0',
    `master_replid:${replicationId}`,
    '',
    '# Cluster',
    'cluster_enabled:0',
  ];
  return `${lines.join('\r\n')}\r\n`;
}
