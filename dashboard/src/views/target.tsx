/** One thing that is polled: who has it and why there, what its polls gave, who had it before; and what can be done about it. */
import { HoldfastApiError } from '../../../src/client/index.ts';
import type { TargetDetail } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { type Asked, useAsked } from '../data/asked.ts';
import { targets } from '../data/fleet.ts';
import { expectRevoked } from '../data/revocation.ts';
import { serverWallOf } from '../data/server-time.ts';
import { STATES } from '../data/states.ts';
import { shellWord } from '../data/words.ts';
import { Action } from '../parts/action.tsx';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Left, Owner, Panel, Stat } from '../parts/basics.tsx';
import { go, hrefOf } from '../router.ts';
import { Age, Answered } from './answered.tsx';
import { Holders, usePast } from './target/holders.tsx';
import { stateOf, TARGET_STATES } from './target/machine.ts';
import { Machine } from './target/machine.tsx';
import type { Past } from './target/past.ts';
import { Polls } from './target/polls.tsx';
import { Placing } from './target/transfer.tsx';
import '../style/target.css';

/** About as often as one can read it. */
const ASK_EVERY_MS = 1_000;
/** Of what is not there. */
const ASK_AGAIN_MS = 5_000;

/** There is no such target; or, what comes to the same, there can be none of that name. */
function isNone(error: unknown): boolean {
  return error instanceof HoldfastApiError && (error.status === 404 || error.status === 400);
}

export function TargetView({ id }: { id: string }) {
  const asked = useAsked<TargetDetail>({
    ask: (signal) => client.target(id, { signal }),
    key: id,
    everyMs: (target) => (target === null ? ASK_AGAIN_MS : ASK_EVERY_MS),
  });
  const past = usePast({ id, isTarget: true });
  const isUnknown = isNone(asked.error);
  past.version.value;
  return (
    <>
      <div class="view-head">
        <h1 class="cut mono" title={id}>
          {id}
        </h1>
        {asked.value !== null && !isUnknown && <Badges target={asked.value} />}
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
      </div>
      {isUnknown ? (
        <Unknown id={id} />
      ) : (
        <Answered asked={asked}>{(target) => <Known {...{ target, asked, past }} />}</Answered>
      )}
      {!isUnknown || past.tenures().length > 0 ? (
        <Holders past={past} present={presentOf(asked, isUnknown)} />
      ) : null}
    </>
  );
}

function presentOf({ value }: Asked<TargetDetail>, isUnknown: boolean) {
  if (value === null || isUnknown) return null;
  const movedAtMs = targets.get(value.id)?.movedAtMs ?? null;
  const since = movedAtMs === null ? null : serverWallOf(movedAtMs);
  return { owner: value.owner, since, fence: value.fence };
}

function Badges({ target: { reason, pinned, owner, preferred } }: { target: TargetDetail }) {
  const { word, kind } = STATES[reason];
  const tone = { well: 'good', busy: '', doubt: 'bad', paused: '' }[kind];
  return (
    <>
      <span class={`badge ${tone}`}>{word}</span>
      {pinned !== null && <span class="badge">pinned</span>}
      {owner !== null && preferred !== null && owner !== preferred && (
        <span
          class="badge"
          title="It is not where it likes to be best, for the sake of even shares"
        >
          not preferred
        </span>
      )}
    </>
  );
}

function Known({
  target,
  asked,
  past,
}: {
  target: TargetDetail;
  asked: Asked<TargetDetail>;
  past: Past;
}) {
  const { id, owner, fence, expiresInMs, why, url, reason } = target;
  const endsAt = (asked.seenAtMs ?? 0) + (expiresInMs ?? Number.POSITIVE_INFINITY);
  const isAlarm = STATES[reason].kind === 'doubt';
  return (
    <>
      <div class="stats">
        <Stat name="Holder" value={<Owner id={owner} />} alarm={owner === null && isAlarm} />
        <Stat
          name="Lease ends in"
          value={expiresInMs === null ? '–' : <Left at={endsAt} />}
          note={owner === null ? 'nobody has one' : 'unless it is renewed'}
        />
        <Stat name="Fence" value={<span class="mono fence">{fence}</span>} />
      </div>
      <p class={isAlarm ? 'notice' : 'target-why'}>
        <span class="visually-hidden">Why: </span>
        {why}
      </p>
      <div class="target-columns">
        <Panel title="State">
          <Machine states={TARGET_STATES} current={stateOf(reason)} />
        </Panel>
        <Placing target={target} past={past} />
      </div>
      <Polls target={target} />
      <Panel title="What can be done" aside={url === null ? undefined : <code>{url}</code>}>
        <Actions target={target} asked={asked} />
        <p class="buttons">
          <a class="button" href={hrefOf('timeline', undefined, { q: id })}>
            In the timeline
          </a>
          <a class="button" href={hrefOf('feed', undefined, { target: id })}>
            Its events
          </a>
        </p>
      </Panel>
    </>
  );
}

function Actions({ target, asked }: { target: TargetDetail; asked: Asked<TargetDetail> }) {
  const { id, reason, owner, fence } = target;
  const word = shellWord(id);
  const again = async (done: Promise<unknown>) => {
    await done;
    asked.again();
  };
  return (
    <div class="buttons">
      {reason === 'paused' ? (
        <Action
          name="Resume"
          effect={`${id} is polled again, by whoever the plan gives it to.`}
          cli={`holdfast sessions resume ${word}`}
          scope="v3:write"
          run={() => again(client.resume(id))}
        />
      ) : (
        <Action
          name="Pause"
          effect={`Its holder finishes the poll in flight and lets ${id} go. Nobody polls it until it is resumed.`}
          cli={`holdfast sessions pause ${word}`}
          scope="v3:write"
          run={() => again(client.pause(id))}
        />
      )}
      <Action
        name="Revoke"
        effect={`${id} is taken from its holder, without asking it. Nobody is granted it while that one may still act. To have it handed over without a gap, transfer it instead.`}
        cli={`holdfast revoke ${word} --target --fence ${fence} --reason '…'`}
        scope="v3:admin"
        reason="required"
        danger
        disabled={owner === null}
        run={(why) => again(client.revokeTarget(id, { reason: why, fence }).then(expectRevoked))}
      />
      <Action
        name="Remove"
        effect={`${id} is not polled any more, and forgotten. What the log has of it stays.`}
        cli={`holdfast sessions rm ${word}`}
        scope="v3:write"
        danger
        run={async () => {
          await client.removeSession(id);
          go('#/');
        }}
      />
    </div>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <Empty title="Nothing is polled under this id.">
      It was removed, or never added. What the log still has of it, if anything, is below. If it is
      a lease under a plain name, <a href={hrefOf('leases', id)}>look at that lease</a>. To have it
      polled:
      <AsCli command={`holdfast sessions add http://127.0.0.1:8080/health --id ${shellWord(id)}`} />
    </Empty>
  );
}
