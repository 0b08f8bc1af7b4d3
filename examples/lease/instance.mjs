/** One process of the demo: `node instance.mjs NAME [STORE]`. It does as it is told over the IPC channel. */
import { open } from 'holdfast';
import { paint, say } from './stage.mjs';

const KEY = 'nightly-report';
const [name, store] = process.argv.slice(2);
let lease = null;

const holdfast = await open(store, { name, prefix: 'demo:', quarantine: 'off' }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
holdfast.on('lease.acquired', ({ fence }) => say(name, paint(32, `has it, fence ${fence}`)));
holdfast.on('lease.lost', ({ reason, heldForMs }) =>
  say(name, paint(31, `has lost it (${reason}) after ${Math.round(heldForMs)} ms`)),
);
holdfast.on('lease.released', () => say(name, 'lets go'));

const acts = {
  async want({ wait }) {
    if (wait !== undefined) say(name, 'waits in line, without polling');
    const result = await holdfast.acquire(KEY, { ttl: '3s', ...(wait && { wait }) });
    if (result.ok) lease = result.lease;
    else
      say(
        name,
        `may not have it: ${result.reason}, free in ${Math.ceil(result.expiresInMs)} ms at the latest`,
      );
  },
  release: () => lease.release(),
  /** Checks as it should, then writes all the same: the lease protects those who ask, the fence the others. */
  async write() {
    say(name, `asks first: isHeld() is ${lease.isHeld()}`);
    try {
      await holdfast.records.put(KEY, { by: name }, { fence: lease.fence });
      say(name, 'writes its report');
    } catch (error) {
      const { code, fence, seen } = error;
      say(
        name,
        `writes all the same, and is refused: ${code}, fence ${fence} is older than ${seen}`,
      );
    }
  },
  async show() {
    const { value } = await holdfast.records.get(KEY);
    say(name, `finds the report as it should be: ${JSON.stringify(value)}`);
  },
  end: () => holdfast.close(),
};

process.on('message', async ({ act, ...facts }) => {
  await acts[act](facts);
  process.send({ done: act });
  if (act === 'end') process.disconnect();
});
// The director has ended, however it did.
process.once('disconnect', () => process.exit());
process.send({ store: (await holdfast.examine()).store });
