/** Whether all is well: the store examined, clocks compared, and how much each member has to spare. */
import type { Diagnosis } from '../../../src/client/operating-messages.ts';
import { client } from '../data/access.ts';
import { useAsked } from '../data/asked.ts';
import { counted } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty, Meter, Owner, Panel, Stat } from '../parts/basics.tsx';
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
          Examine now
        </button>
      </div>
      <Answered asked={asked}>{(diagnosis) => <Findings diagnosis={diagnosis} />}</Answered>
      <section aria-label="The same in a terminal" class="work-section">
        <p class="quiet small">The same in a terminal:</p>
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
          <strong>✓ All is well.</strong> Nothing that was looked at asks for anything to be done.
        </p>
      ) : (
        <Panel title={`${counted(warnings.length, 'finding')} to act on`}>
          <ul class="findings">{warnings.map(finding)}</ul>
        </Panel>
      )}
      <Figures diagnosis={diagnosis} />
      <Panel title="Renewal margin" aside="what is left of the TTL, member by member">
        <p class="quiet small">
          A lease that is not renewed before its TTL is over is lost. The margin is the TTL minus
          the time that the slowest of a hundred renewals take: the longer the bar, the more may go
          wrong.
        </p>
        {members.length === 0 ? (
          <Empty title="No member takes part.">
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
      <Panel title="The store, examined" aside={<code>{store}</code>}>
        {fine.length === 0 ? (
          <p class="quiet">Nothing that is as it should be was found.</p>
        ) : (
          <ul class="findings">{fine.map(finding)}</ul>
        )}
      </Panel>
    </>
  );
}

const LEVELS: Readonly<Record<Finding['level'], readonly [words: string, tone: string]>> = {
  ok: ['✓ fine', 'good'],
  warn: ['▲ warning', 'warn'],
  refuse: ['✕ unfit', 'bad'],
};

function finding({ level, subject, fact, advice }: Finding) {
  const [words, tone] = LEVELS[level];
  return (
    <li key={`${subject} ${fact}`} data-level={level}>
      <span class={`badge ${tone}`}>{words}</span>
      <div>
        <strong>{subject}</strong> {fact}
        {advice !== undefined && <div class="advice">→ {advice}</div>}
      </div>
    </li>
  );
}

function Figures({ diagnosis: { findings, roundTrip, clock, members } }: { diagnosis: Diagnosis }) {
  const isAlarm = (about: string) =>
    findings.some(({ subject, level }) => subject === about && level !== 'ok');
  const delays = members.flatMap(({ loopDelayMs }) => loopDelayMs ?? []);
  const margins = members.flatMap(({ marginMs }) => marginMs ?? []);
  return (
    <div class="stats wide">
      <Stat
        name="Round trip to the store"
        alarm={isAlarm('round trip')}
        value={roundTrip === null ? '–' : msText(roundTrip.p50Ms)}
        note={
          roundTrip === null
            ? 'It could not be measured.'
            : `Half of ${roundTrip.reads} reads of this instance took no longer, all but one in a hundred ${msText(roundTrip.p99Ms)}. Every renewal takes at least that.`
        }
      />
      <Stat
        name="Clock offset"
        alarm={isAlarm('clock')}
        value={clock === null ? 'none' : msText(Math.abs(clock.offsetMs))}
        note={
          clock === null
            ? 'The store and this instance read the same clock.'
            : `${clockText(clock)} Leases do not depend on it; times in the log do.`
        }
      />
      <Stat
        name="Smallest margin"
        alarm={isAlarm('renewals')}
        value={margins.length === 0 ? '–' : msText(Math.min(...margins))}
        note="What the member with the least to spare has left of its leases’ time when renewals are slow."
      />
      <Stat
        name="Event-loop delay"
        alarm={isAlarm('event loop')}
        value={delays.length === 0 ? '–' : msText(Math.max(...delays))}
        note="By how much a member was late with everything, at most, in the last minute: its process was busy or stood still. It adds to every renewal."
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
          label="Of the TTL left"
          {...(word !== 'ample' && { colour: 'var(--bad)' })}
        />
      )}
      <span class="quiet small">
        {words}
        {member.loopDelayMs !== null &&
          ` Its event loop was late by ${msText(member.loopDelayMs)}.`}
      </span>
    </li>
  );
}
