/** What the map and the list of targets say if there is nothing to show. */
import { about, may } from '../data/access.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty } from '../parts/basics.tsx';
import { setQuery } from '../router.ts';
import { AddTarget } from './map/add-target.tsx';

export function NoMatch() {
  return (
    <Empty title="No target matches these filters.">
      <button type="button" onClick={() => setQuery({ q: '', state: '', member: '' })}>
        Clear filters
      </button>
    </Empty>
  );
}

export function NoInstances() {
  return (
    <Empty title="No instance is running, so no target is polled.">
      <span>Start one or more instances on the same store:</span>
      <AsCli command={`holdfast up --store ${about.value?.store ?? 'sqlite:holdfast.db'}`} />
    </Empty>
  );
}

export function NoTargets() {
  return (
    <Empty title="The fleet has no targets yet.">
      <span>Add one. The instances divide the targets among themselves:</span>
      <AsCli command="holdfast targets add https://example.com" />
      {may('v3:write') && <AddTarget />}
    </Empty>
  );
}
