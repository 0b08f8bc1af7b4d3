/** A box with two tuners, and what runs on one: all that `holdfast up` has to be told. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'holdfast';

export default defineConfig({
  roles: ['api', 'worker'],
  resources: { tuners: 2 },
  pipelines: {
    live: { command: ['sh', fileURLToPath(new URL('channel.sh', import.meta.url))] },
  },
  // With a name of its own, it frees at once what it had when it was killed.
  worker: { name: 'living-room' },
});
