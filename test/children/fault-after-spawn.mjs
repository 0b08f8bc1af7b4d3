// Loaded into a supervisor before it (NODE_OPTIONS=--import): sends itself the signal of AFTER_SPAWN at the moment when it has started a process, and
// has told nobody. Every other process that loads this is left alone.
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

const { AFTER_SPAWN: signal } = process.env;
if (signal !== undefined && process.argv[1]?.endsWith('supervisor.js')) {
  const { spawn } = childProcess;
  childProcess.spawn = (...args) => {
    const child = spawn(...args);
    process.kill(process.pid, signal);
    return child;
  };
  syncBuiltinESMExports();
}
