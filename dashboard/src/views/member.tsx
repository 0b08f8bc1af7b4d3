/** One instance: its status, its targets, and its history. */
import type { ComponentChildren } from 'preact';
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
import { Restarted } from './restarted.tsx';
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
  if (seenAtMs.value === null) return <p class="quiet">Loading the fleet …</p>;
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
            <Panel title="Targets" aside={counted(owned.length, 'target')}>
              {owned.length === 0 ? (
                <p class="quiet">
                  It owns no targets
                  {member.isDraining && ': it has handed over all of them'}.
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
      {member !== null && <Restarted id={id} always />}
      {about.value?.instance === id && <span class="badge">serves this dashboard</span>}
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

/** What can go wrong is large; what rarely changes is one line below. */
function Figures({ member }: { member: SeenMember }) {
  const { owned, quota, weight, version, startedAt, vitals } = member;
  const margin = marginMs(member);
  return (
    <section class="member-status" aria-label="Status">
      <div class="stats member-stats">
        <Heartbeat member={member} />
        <Stat name="Targets" value={owned} note={`quota ${quota}`} />
        <Stat
          name="Renewal margin"
          value={margin === null ? '–' : spanOf(margin)}
          note={`TTL minus a slow renewal (p99 ${figure(vitals?.renewP99Ms)})`}
          tone={margin !== null && margin <= 0 ? 'bad' : undefined}
        />
      </div>
      <dl class="line-facts">
        <Fact name="Uptime">
          {startedAt === null
            ? 'unknown'
            : `${spanOf(Math.max(0, serverWallOf(now.value) - startedAt))}, since ${moment(startedAt)}`}
        </Fact>
        <Fact name="Event-loop delay">{figure(vitals?.loopDelayMs)}</Fact>
        <Fact name="Weight">{weight}</Fact>
        <Fact name="Version">{version ?? 'unknown'}</Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** How old the last heartbeat is, and how long one is valid. */
function Heartbeat({ member }: { member: SeenMember }) {
  const ageMs = beatAgeMs(member, now.value);
  const leftMs = Math.max(0, member.expiresAtMs - now.value);
  const { level, word } = memberState(member, now.value);
  if (ageMs === null || member.beatTtlMs === null)
    return <Stat name="Heartbeat expires in" value={spanOf(tenths(leftMs))} />;
  const isLate = level === 'bad' || level === 'warn';
  return (
    <Stat
      name={isLate ? `Heartbeat: ${word}` : 'Heartbeat'}
      value={`${spanOf(tenths(ageMs))} ago`}
      tone={isLate ? level : undefined}
      note={
        <>
          valid for {spanOf(member.beatTtlMs)}
          <Meter share={leftMs / member.beatTtlMs} label="Time until the heartbeat expires" />
        </>
      }
    />
  );
}

function tenths(ms: number): number {
  return Math.round(ms / 100) * 100;
}

function figure(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? '–' : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}
