/** One process of the demo: `node instance.mjs NAME PREFIX [STORE]`. It does as it is told over the IPC channel. */
import { open } from 'holdfast';
import { paint, tell } from '../staging/telling.mjs';

const KEY = 'nightly-report';
const [name, prefix, store] = process.argv.slice(2);
let lease = null;

const holdfast = await open(store, { name, prefix, quarantine: 'off' }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
holdfast.on('lease.acquired', ({ fence }) => tell(name, paint(32, `has it, fence ${fence}`)));
holdfast.on('lease.lost', ({ reason, heldForMs }) =>
  tell(name, paint(31, `has lost it (${reason}) after ${Math.round(heldForMs)} ms`)),
);
holdfast.on('lease.released', () => tell(name, 'lets go'));

const acts = {
  async want({ wait }) {
    if (wait !== undefined) tell(name, 'waits in line, without polling');
    const result = await holdfast.acquire(KEY, { ttl: '3s', ...(wait && { wait }) });
    if (result.ok) lease = result.lease;
    else
      tell(
        name,
        `may not have it: ${result.reason}, free in ${Math.ceil(result.expiresInMs)} ms at the latest`,
      );
  },
  release: () => lease.release(),
  /** Checks as it should, then writes all the same: the lease protects those who ask, the fence the others. */
  async write() {
    tell(name, `asks first: isHeld() is ${lease.isHeld()}`);
    try {
      await holdfast.records.put(KEY, { by: name }, { fence: lease.fence });
      tell(name, 'writes its report');
    } catch (error) {
      const { code, fence, seen } = error;
      tell(
        name,
        `writes all the same, and is refused: ${code}, fence ${fence} is older than ${seen}`,
      );
    }
  },
  async show() {
    const { value } = await holdfast.records.get(KEY);
    tell(name, `finds the report as it should be: ${JSON.stringify(value)}`);
  },
  end: () => holdfast.close(),
};

process.on('message', async ({ act, ...facts }) => {
  // Between two statements: in the middle of a write it would hold the embedded store's file, and with it everybody.
  if (act === 'freeze') return process.kill(process.pid, 'SIGSTOP');
  await acts[act](facts);
  process.send({ done: act });
  if (act === 'end') process.disconnect();
});
// The director has ended, however it did.
process.once('disconnect', () => process.exit());
process.send({ store: (await holdfast.examine()).store });
