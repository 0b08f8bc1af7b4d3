/** One member: how it is doing, what it owns, and what has happened to it. */
import { useEffect } from 'preact/hooks';
import { about } from '../data/access.ts';
import { members, type SeenMember, seenAtMs } from '../data/fleet.ts';
import { all, ownedBy } from '../data/lanes.ts';
import { beatAgeMs, marginMs, memberState } from '../data/member-state.ts';
import { now } from '../data/now.ts';
import { markOf, nameOf } from '../data/palette.ts';
import { serverWallOf } from '../data/server-time.ts';
import { followStage } from '../data/stage.ts';
import { counted, moment, spanOf } from '../data/words.ts';
import { Meter, Panel, Stat } from '../parts/basics.tsx';
import { DrainActions, DrainProgress } from './member/drain.tsx';
import { EventList } from './member/event-list.tsx';
import { Gone } from './member/gone.tsx';
import { useMemberEvents } from './member/member-events.ts';
import { Renewals } from './member/renewals.tsx';
import { StageButtons } from './stage-buttons.tsx';
import { TargetList } from './target-list.tsx';
import '../style/member.css';

const LIST_HEIGHT = 420;

export function MemberView({ id }: { id: string }) {
  useEffect(() => {
    const end = new AbortController();
    followStage(end.signal);
    return () => end.abort();
  }, []);
  const known = useMemberEvents(id);
  all.version.value;
  if (seenAtMs.value === null) return <p class="quiet">Waiting for a first picture …</p>;
  const member = members.value.find((one) => one.id === id) ?? null;
  const owned = ownedBy(id);
  return (
    <>
      <Head id={id} member={member} />
      {member === null ? (
        <Gone {...{ id, known, owned }} />
      ) : (
        <>
          <Figures member={member} />
          {member.isDraining && (
            <DrainProgress {...{ member, events: known.events, left: owned.length }} />
          )}
          <div class="member-columns">
            <Panel title="What it owns" aside={counted(owned.length, 'target')}>
              {owned.length === 0 ? (
                <p class="quiet">
                  Nothing{member.isDraining && ': it has handed everything over'}.
                </p>
              ) : (
                <TargetList items={owned} label="Its targets" height={LIST_HEIGHT} owner={false} />
              )}
            </Panel>
            <Renewals member={member} />
          </div>
          <EventList id={id} known={known} />
        </>
      )}
    </>
  );
}

function Head({ id, member }: { id: string; member: SeenMember | null }) {
  const { word, level } = memberState(member, now.value);
  const { colour, letters } = markOf(id);
  return (
    <div class="view-head">
      <h1 class="owner">
        <i aria-hidden="true" style={{ '--owner-colour': colour }}>
          {letters}
        </i>
        {nameOf(id)}
      </h1>
      <span class={`badge ${level}`}>{word}</span>
      {about.value?.instance === id && <span class="badge">serves this page</span>}
      <code class="member-id quiet small" title={id}>
        {id}
      </code>
      <span class="push" />
      <StageButtons member={id} name={nameOf(id)} />
      {member !== null && !member.isForeign && !member.isDraining && (
        <DrainActions member={member} />
      )}
    </div>
  );
}

function Figures({ member }: { member: SeenMember }) {
  const { owned, quota, weight, version, startedAt, vitals } = member;
  const margin = marginMs(member);
  return (
    <div class="stats member-stats">
      <Heartbeat member={member} />
      <Stat name="Targets" value={owned} note={`its quota is ${quota}`} />
      <Stat name="Renewals, p99" value={figure(vitals?.renewP99Ms)} note={p50Of(member)} />
      <Stat
        name="Margin"
        value={margin === null ? '–' : spanOf(margin)}
        note="TTL minus p99"
        alarm={margin !== null && margin <= 0}
      />
      <Stat
        name="Event loop late"
        value={figure(vitals?.loopDelayMs)}
        note="at most, in a minute"
      />
      <Stat
        name="Uptime"
        value={startedAt === null ? '–' : spanOf(Math.max(0, serverWallOf(now.value) - startedAt))}
        note={startedAt === null ? undefined : `since ${moment(startedAt)}`}
      />
      <Stat name="Weight" value={weight} note="its share" />
      <Stat name="Version" value={version ?? '–'} />
    </div>
  );
}

/** How old the last heartbeat is, against how long one lasts. */
function Heartbeat({ member }: { member: SeenMember }) {
  const ageMs = beatAgeMs(member, now.value);
  const leftMs = Math.max(0, member.expiresAtMs - now.value);
  const { level, word } = memberState(member, now.value);
  if (ageMs === null || member.beatTtlMs === null)
    return <Stat name="Heartbeat" value={spanOf(tenths(leftMs))} note="left of it" />;
  return (
    <Stat
      name={level === 'bad' ? `Heartbeat: ${word}` : 'Heartbeat'}
      value={spanOf(tenths(ageMs))}
      alarm={level === 'bad'}
      note={
        <>
          old, good for {spanOf(member.beatTtlMs)}
          <Meter share={leftMs / member.beatTtlMs} label="left of the heartbeat" />
        </>
      }
    />
  );
}

function tenths(ms: number): number {
  return Math.round(ms / 100) * 100;
}

function p50Of({ vitals }: SeenMember): string {
  const p50 = vitals?.renewP50Ms ?? null;
  return p50 === null ? 'not told' : `half within ${figure(p50)}`;
}

function figure(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? '–' : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}
