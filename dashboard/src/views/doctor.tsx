/** The checks of `holdfast doctor`: the store, the clocks, and how much room each instance has for slow renewals. */
import type { Diagnosis } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useAsked } from '../data/asked.ts';
import { counted } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Meter, Owner, Panel, Stat } from '../parts/basics.tsx';
import { Icon, type IconName } from '../parts/icon.tsx';
import { Age, Answered } from './answered.tsx';
import {
  type Checked,
  clockText,
  type Finding,
  type Margin,
  marginOf,
  msText,
  sorted,
} from './doctor/margin.ts';
import '../style/work.css';

const EVERY_MS = 10_000;

export function DoctorView() {
  const asked = useAsked({ ask: (signal) => client.doctor({ signal }), everyMs: EVERY_MS });
  return (
    <>
      <div class="view-head">
        <h1>Doctor</h1>
        <span class="push quiet small">
          <Age asked={asked} />
        </span>
        <button type="button" onClick={() => asked.again()}>
          Run checks
        </button>
      </div>
      <Answered asked={asked}>{(diagnosis) => <Findings diagnosis={diagnosis} />}</Answered>
      <section aria-label="Command" class="work-section">
        <p class="quiet small">Run the same checks in a terminal:</p>
        <AsCli command="holdfast doctor" />
      </section>
    </>
  );
}

function Findings({ diagnosis }: { diagnosis: Diagnosis }) {
  const { store, findings, members } = diagnosis;
  const { warnings, fine } = sorted(findings);
  return (
    <>
      {warnings.length === 0 ? (
        <p class="notice good" role="status">
          <Icon name="check" /> <strong>All checks passed.</strong> You do not have to do anything.
        </p>
      ) : (
        <Panel title={`${counted(warnings.length, 'problem')} to fix`}>
          <ul class="findings">{warnings.map(finding)}</ul>
        </Panel>
      )}
      <Figures diagnosis={diagnosis} />
      <Panel title="Renewal margin" aside="per instance">
        <p class="quiet small">
          An instance loses a lease that it does not renew within the TTL. The margin is the TTL
          minus the time that a slow renewal takes (p99). A longer bar means more room for slow
          renewals.
        </p>
        {members.length === 0 ? (
          <Empty title="No instance is running.">
            <AsCli command="holdfast up" />
          </Empty>
        ) : (
          <ul class="margins">
            {members.map((member) => (
              <MarginRow key={member.id} member={member} />
            ))}
          </ul>
        )}
      </Panel>
      <Panel title="Store checks" aside={<code>{store}</code>}>
        {fine.length === 0 ? (
          <p class="quiet">No check of the store passed.</p>
        ) : (
          <ul class="findings">{fine.map(finding)}</ul>
        )}
      </Panel>
    </>
  );
}

const LEVELS: Readonly<
  Record<Finding['level'], readonly [words: string, tone: string, icon: IconName]>
> = {
  ok: ['passed', 'good', 'check'],
  warn: ['warning', 'warn', 'warning'],
  refuse: ['failed', 'bad', 'cross'],
};

function finding({ level, subject, fact, advice }: Finding) {
  const [words, tone, icon] = LEVELS[level];
  return (
    <li key={`${subject} ${fact}`} data-level={level}>
      <span class={`badge ${tone}`}>
        <Icon name={icon} />
        {words}
      </span>
      <div>
        <strong>{subject}</strong> {fact}
        {advice !== undefined && <div class="advice">{advice}</div>}
      </div>
    </li>
  );
}

function Figures({ diagnosis: { findings, roundTrip, clock, members } }: { diagnosis: Diagnosis }) {
  const toneFor = (about: string) => {
    const levels = findings.flatMap(({ subject, level }) => (subject === about ? [level] : []));
    if (levels.includes('refuse')) return 'bad';
    return levels.includes('warn') ? 'warn' : undefined;
  };
  const delays = members.flatMap(({ loopDelayMs }) => loopDelayMs ?? []);
  const margins = members.flatMap(({ marginMs }) => marginMs ?? []);
  return (
    <div class="stats wide">
      <Stat
        name="Round trip to the store"
        tone={toneFor('round trip')}
        value={roundTrip === null ? '–' : msText(roundTrip.p50Ms)}
        note={
          roundTrip === null
            ? 'This instance could not measure it.'
            : `Median of ${roundTrip.reads} reads by this instance; p99 is ${msText(roundTrip.p99Ms)}. A renewal takes at least one round trip.`
        }
      />
      <Stat
        name="Clock offset"
        tone={toneFor('clock')}
        value={clock === null ? 'none' : msText(Math.abs(clock.offsetMs))}
        note={
          clock === null
            ? 'The store and this instance use the same clock.'
            : `${clockText(clock)} Leases do not depend on clocks; times in the log do.`
        }
      />
      <Stat
        name="Smallest margin"
        tone={toneFor('renewals')}
        value={margins.length === 0 ? '–' : msText(Math.min(...margins))}
        note="The instance with the least room has this much of the TTL left after a slow renewal."
      />
      <Stat
        name="Event-loop delay"
        tone={toneFor('event loop')}
        value={delays.length === 0 ? '–' : msText(Math.max(...delays))}
        note="The longest time in the last minute that an instance was too busy to run anything. It can delay a renewal by as much."
      />
    </div>
  );
}

const TONES: Readonly<Record<Margin['word'], string>> = {
  ample: 'good',
  short: 'warn',
  none: 'bad',
  unknown: '',
};

function MarginRow({ member }: { member: Checked }) {
  const { share, word, words } = marginOf(member);
  return (
    <li data-member={member.id}>
      <Owner id={member.id} />
      <span class={`badge ${TONES[word]}`}>{word}</span>
      {share === null ? (
        <span />
      ) : (
        <Meter
          share={share}
          label="TTL left after a slow renewal"
          {...(word !== 'ample' && { colour: 'var(--bad)' })}
        />
      )}
      <span class="quiet small">
        {words}
        {member.loopDelayMs !== null && ` Event-loop delay ${msText(member.loopDelayMs)}.`}
      </span>
    </li>
  );
}
