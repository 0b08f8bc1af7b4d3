/**
 * Loaded into every process of an example before its own file. It does not outlive whoever started it, however that one ends; and it is frozen between
 * two statements: one that is stopped in the middle of a write holds the embedded store's file, and with it everybody (docs/sqlite.md).
 */
process.once('disconnect', () => process.kill(0, 'SIGKILL'));
process.on('message', ({ act }) => {
  if (act === 'freeze') process.kill(process.pid, 'SIGSTOP');
});
process.channel.unref();
