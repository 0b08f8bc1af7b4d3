/** One target: its owner and why, its polls, its history, and the actions on it. */
import { HoldfastApiError } from '../../../src/client/index.ts';
import type { TargetDetail } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { type Asked, useAsked } from '../data/asked.ts';
import { targets } from '../data/fleet.ts';
import { withNames } from '../data/palette.ts';
import { expectRevoked } from '../data/revocation.ts';
import { serverWallOf } from '../data/server-time.ts';
import { isNotPreferred, levelOf, STATES } from '../data/states.ts';
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
import { Task } from './target/task.tsx';
import { Placing } from './target/transfer.tsx';
import '../style/target.css';

const ASK_EVERY_MS = 1_000;
/** For a target that does not exist. */
const ASK_AGAIN_MS = 5_000;

/** The target does not exist, or its id is not valid. */
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

function Badges({ target }: { target: TargetDetail }) {
  const { pinned } = target;
  const { word, kind } = STATES[target.reason];
  const tone = levelOf(target) ?? (kind === 'well' ? 'good' : '');
  return (
    <>
      <span class={`badge ${tone}`}>{word}</span>
      {pinned !== null && <span class="badge">pinned</span>}
      {isNotPreferred(target) && (
        <span
          class="badge"
          title="Another instance is the better place for it, but has its quota of targets"
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
  const task = taskOf(target);
  const endsAt = (asked.seenAtMs ?? 0) + (expiresInMs ?? Number.POSITIVE_INFINITY);
  const level = levelOf(target);
  return (
    <>
      <div class="stats">
        <Stat name="Owner" value={<Owner id={owner} />} tone={owner === null ? level : undefined} />
        <Stat
          name="Lease expires in"
          value={expiresInMs === null ? '–' : <Left at={endsAt} />}
          note={owner === null ? undefined : 'unless its owner renews it'}
        />
        <Stat name="Fence" value={<span class="mono fence">{fence}</span>} />
      </div>
      <p class={level === undefined ? 'target-why' : `notice ${level}`}>
        <span class="visually-hidden">Why: </span>
        {withNames(why)}
      </p>
      <div class="target-columns">
        <Panel title="Status">
          <Machine states={TARGET_STATES} current={stateOf(reason)} />
        </Panel>
        <Placing target={target} past={past} />
      </div>
      {task === null ? <Polls target={target} /> : <Task id={id} result={task} />}
      <Panel title="Actions" aside={url === null ? undefined : <code>{url}</code>}>
        <Actions target={target} asked={asked} />
        <p class="buttons">
          <a class="button" href={hrefOf('timeline', undefined, { q: id })}>
            Show in timeline
          </a>
          <a class="button" href={hrefOf('feed', undefined, { target: id })}>
            Show events
          </a>
        </p>
      </Panel>
    </>
  );
}

/** Null for a target that is polled. */
function taskOf({ lastResult }: TargetDetail) {
  const state = lastResult?.state;
  return lastResult === null || state === undefined ? null : { ...lastResult, state };
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
          effect={`The fleet gives ${id} to an instance, which works on it again.`}
          cli={`holdfast targets resume ${word}`}
          scope="v3:write"
          run={() => again(client.resume(id))}
        />
      ) : (
        <Action
          name="Pause"
          effect={`Its owner finishes the poll in flight, or stops its task, and releases ${id}. No instance works on it until you resume it.`}
          cli={`holdfast targets pause ${word}`}
          scope="v3:write"
          run={() => again(client.pause(id))}
        />
      )}
      <Action
        name="Revoke"
        effect={`The store revokes the lease of ${id} at once. It grants ${id} to no instance while the former owner may still act. To move it without a gap, transfer it instead.`}
        cli={`holdfast revoke ${word} --target --fence ${fence} --reason '…'`}
        scope="v3:admin"
        reason="required"
        danger
        disabled={owner === null}
        run={(why) => again(client.revokeTarget(id, { reason: why, fence }).then(expectRevoked))}
      />
      <Action
        name="Remove"
        effect={`The fleet stops working on ${id} and forgets it. Its log entries stay.`}
        cli={`holdfast targets rm ${word}`}
        scope="v3:write"
        danger
        run={async () => {
          await client.removeSession(id);
          go(hrefOf('targets'));
        }}
      />
    </div>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <Empty title="The fleet has no target with this id.">
      <span>
        An operator removed it, or it was never added. If it is the key of a lease,{' '}
        <a href={hrefOf('leases', id)}>open the lease</a>. Add the target:
      </span>
      <AsCli command={`holdfast targets add http://127.0.0.1:8080/health --id ${shellWord(id)}`} />
    </Empty>
  );
}
