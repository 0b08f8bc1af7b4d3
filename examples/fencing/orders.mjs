import { tell } from '../staging/telling.mjs';

/** Does as it is told over the channel to whoever started this process, and says what came of it. */
export function obey(name, acts) {
  process.on('message', async ({ act, ...facts }) => {
    try {
      process.send({ said: act, ...(await acts[act](facts)) });
    } catch (error) {
      tell(name, `fails: ${error.message}`);
      process.exit(1);
    }
  });
  // It stays until it is ended, whether it has something to do or not.
  process.channel.ref();
  process.send({ said: 'ready' });
}
