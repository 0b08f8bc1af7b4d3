/** All targets as a list, with filters, and a form to add one. */
import { members, seenAtMs } from '../data/fleet.ts';
import { all, counts } from '../data/lanes.ts';
import { Panel } from '../parts/basics.tsx';
import { NoInstances, NoMatch, NoTargets } from './fleet-empty.tsx';
import { shareText } from './long-list.tsx';
import { AddTarget } from './map/add-target.tsx';
import { Filters } from './map/controls.tsx';
import { wanted } from './map/filter.ts';
import { TargetList } from './target-list.tsx';
import '../style/map.css';

/** What is above and below the list. */
const AROUND_PX = 300;
const LEAST_HEIGHT_PX = 320;

export function TargetsView() {
  if (seenAtMs.value === null) return <p class="quiet">Loading the fleet …</p>;
  all.version.value;
  const items = wanted(all.items);
  return (
    <>
      <div class="view-head">
        <h1>Targets</h1>
        <span class="quiet">{shareText(items.length, counts.value.all, 'target')}</span>
        <span class="push" />
        {counts.value.all > 0 && <Filters />}
      </div>
      {members.value.length === 0 && <NoInstances />}
      {counts.value.all === 0 ? (
        <NoTargets />
      ) : items.length === 0 ? (
        <NoMatch />
      ) : (
        <section class="panel" aria-label="All targets">
          <TargetList
            items={items}
            label="Targets"
            height={Math.max(LEAST_HEIGHT_PX, innerHeight - AROUND_PX)}
          />
        </section>
      )}
      {counts.value.all > 0 && (
        <Panel title="Add a target">
          <AddTarget />
        </Panel>
      )}
    </>
  );
}
