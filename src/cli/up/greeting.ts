import { shortName } from '../../base/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { counted, printable } from '../text.ts';
import type { Instance } from './instance.ts';

/** Says what runs here, on what, and what to try next. */
export async function greet({ holdfast, poller, log, status }: Instance): Promise<void> {
  const { instanceId } = holdfast;
  const seen = await look(holdfast).catch(() => null);
  const owned = poller.manager.ownedSessions().length;
  const shared = (of: Seen) =>
    `: ${counted(of.targets, 'target')} for ${counted(of.members, 'instance')}`;
  const message = `is up${seen === null ? '' : shared(seen)}`;
  log.say('info', message, { ...seen, owned });
  if (status === null) return;
  const store = seen === null ? 'a store that does not answer' : seen.store;
  const isIdle = seen?.targets === 0;
  const lines = [
    `${shortName(instanceId)} takes part, on ${printable(store)}.`,
    isIdle
      ? '  There is nothing to poll yet: holdfast sessions add https://example.com'
      : '  Who owns what: holdfast map. Why: holdfast explain TARGET. What happens: holdfast watch.',
    '  Start it again, here or in another terminal, and they share the targets. Ctrl-C hands everything over.',
  ];
  status.above(`${lines.join('\n')}\n`);
}

interface Seen {
  readonly store: string;
  readonly targets: number;
  readonly members: number;
}

async function look(holdfast: Holdfast): Promise<Seen> {
  const [{ store }, { targets, members }] = await Promise.all([
    holdfast.examine(),
    holdfast.fleet.view(),
  ]);
  return { store, targets: targets.length, members: members.length };
}
