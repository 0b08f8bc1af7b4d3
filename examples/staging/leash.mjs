/** Loaded into every process of an example before its own file: it does not outlive whoever started it, however that one ends. */
process.once('disconnect', () => process.kill(0, 'SIGKILL'));
process.channel.unref();
