import { shortName } from '../../base/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { counted, printable } from '../text.ts';
import type { FrontDoor } from './front-door.ts';
import type { Instance } from './instance.ts';

/** Says what runs here, on what, and what to try next. */
export async function greet({ holdfast, poller, door, log, status }: Instance): Promise<void> {
  const { instanceId } = holdfast;
  const seen = await look(holdfast).catch(() => null);
  if (poller === null) log.say('info', 'is up', { url: door?.url });
  else {
    const owned = poller.manager.ownedSessions().length;
    const shared = (of: Seen) =>
      `: ${counted(of.targets, 'target')} for ${counted(of.members, 'instance')}`;
    log.say('info', `is up${seen === null ? '' : shared(seen)}`, { ...seen, owned });
  }
  if (status === null) return;
  const store = seen === null ? 'a store that does not answer' : seen.store;
  const lines = [
    `${shortName(instanceId)} takes part, on ${printable(store)}.`,
    ...(door === null ? [] : ofDoor(door)),
    ...(poller === null ? ['  Ctrl-C stops it.'] : ofPoller(seen)),
  ];
  status.above(`${lines.join('\n')}\n`);
}

function ofPoller(seen: Seen | null): string[] {
  return [
    seen?.targets === 0
      ? '  There is nothing to poll yet: holdfast sessions add https://example.com'
      : '  Who owns what: holdfast map. Why: holdfast explain TARGET. What happens: holdfast watch.',
    '  Start it again, here or in another terminal, and they share the targets. Ctrl-C hands everything over.',
  ];
}

function ofDoor({ url, madeToken }: FrontDoor): string[] {
  const whose = madeToken === null ? 'with one of your tokens' : 'with the token above';
  return [
    `  The API is at ${url}, and explained at ${url}/docs. Try it, ${whose} in TOKEN:`,
    `    curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"type":"stream.start","serviceRef":"channel-7"}' ${url}/api/v3/intents`,
  ];
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
