/** Actions that failed as often as they may. An operator retries or drops them. */
import { useState } from 'preact/hooks';
import type { ApiDeadLetter } from '../../../../src/client/operating-messages.ts';
import { client } from '../../data/access.ts';
import { useArrivals } from '../../data/arrivals.ts';
import { type Asked, useAsked } from '../../data/asked.ts';
import { counted, moment, shellWord } from '../../data/words.ts';
import { Action } from '../../parts/action.tsx';
import { Empty, Panel } from '../../parts/basics.tsx';
import { ScrollX } from '../../parts/scroll-x.tsx';
import { hrefOf } from '../../router.ts';
import { Age, Answered } from '../answered.tsx';

const EVERY_MS = 10_000;
const FIRST_SHOWN = 20;

export function DeadLetters() {
  const asked = useAsked({ ask: (signal) => client.deadLetters({ signal }), everyMs: EVERY_MS });
  useArrivals(['workflow', 'operator'], () => asked.again(1_000));
  return (
    <Panel title="Dead letters" aside={<Age asked={asked} />}>
      <Answered asked={asked}>
        {(letters) =>
          letters.length === 0 ? (
            <Empty title="No dead letters.">
              An action becomes a dead letter when its last attempt fails. You can then retry it or
              drop it.
            </Empty>
          ) : (
            <Letters letters={letters} asked={asked} />
          )
        }
      </Answered>
    </Panel>
  );
}

function Letters({
  letters,
  asked,
}: {
  letters: readonly ApiDeadLetter[];
  asked: Asked<readonly ApiDeadLetter[]>;
}) {
  const [shown, setShown] = useState(FIRST_SHOWN);
  return (
    <>
      <ScrollX label="Dead letters">
        <table class="rows stacked">
          <thead>
            <tr>
              <th>Action</th>
              <th>Workflow</th>
              <th>Reason</th>
              <th>Attempts</th>
              <th>Since</th>
              <th>
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {letters.slice(0, shown).map((letter) => (
              <Letter key={letter.id} letter={letter} onDone={() => asked.again()} />
            ))}
          </tbody>
        </table>
      </ScrollX>
      {letters.length > shown && (
        <button type="button" onClick={() => setShown(letters.length)}>
          Show all {counted(letters.length, 'letter')}
        </button>
      )}
    </>
  );
}

function Letter({ letter, onDone }: { letter: ApiDeadLetter; onDone(): void }) {
  const { id, workflow, type, tries, reason, diedAt } = letter;
  const name = `${type ?? 'an unreadable action'} of ${workflow}`;
  return (
    <tr data-letter={id}>
      <td>
        <code>{type ?? 'unreadable'}</code> <span class="quiet small">{id}</span>
      </td>
      <td class="cut">
        <a href={hrefOf('workflows', workflow)} title={workflow}>
          {workflow}
        </a>
      </td>
      <td class="why">{reason}</td>
      <td>{counted(tries, 'attempt')}</td>
      <td>{moment(Date.parse(diedAt))}</td>
      <td>
        <div class="buttons">
          <Action
            name="Retry"
            effect={`Holdfast emits ${name} again, with the same id: at once if a process holds the workflow, else with the next claim.`}
            cli={`holdfast deadletters retry ${shellWord(id)}`}
            scope="v3:admin"
            run={() => client.retryDeadLetter(id).then(onDone)}
          />
          <Action
            name="Drop"
            danger
            effect={`Holdfast deletes ${name}. Its workflow learned of the failure when it happened.`}
            cli={`holdfast deadletters drop ${shellWord(id)}`}
            scope="v3:admin"
            run={() => client.dropDeadLetter(id).then(onDone)}
          />
        </div>
      </td>
    </tr>
  );
}
