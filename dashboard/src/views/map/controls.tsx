/** How the fleet is drawn, and the filters. */
import { members } from '../../data/fleet.ts';
import { counts } from '../../data/lanes.ts';
import { setQuery } from '../../router.ts';
import { FILTER_STATES, filter, isFiltered, MOST_CELLS, type Shape, shape } from './filter.ts';

const SHAPES: Readonly<Record<Shape, string>> = {
  cells: 'Cells with ids',
  dense: 'Small squares: the whole fleet at once',
  list: 'A list',
};

export function Shapes() {
  return (
    <fieldset class="segments">
      <legend class="visually-hidden">Layout</legend>
      {(Object.keys(SHAPES) as Shape[]).map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={shape.value === one}
          title={SHAPES[one]}
          disabled={one === 'cells' && counts.value.all > MOST_CELLS}
          onClick={() => setQuery({ as: one })}
        >
          {one.replace(/^./, (first) => first.toUpperCase())}
        </button>
      ))}
    </fieldset>
  );
}

export function Filters() {
  const { text, state, member } = filter.value;
  return (
    <search class="filters">
      <input
        type="search"
        data-search
        aria-label="Filter by id"
        placeholder="Filter by id  /"
        value={text}
        onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
      />
      <select
        aria-label="Filter by state"
        value={state}
        onChange={({ currentTarget }) => setQuery({ state: currentTarget.value })}
      >
        <option value="">any state</option>
        {Object.keys(FILTER_STATES).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <select
        aria-label="Filter by instance"
        value={member}
        onChange={({ currentTarget }) => setQuery({ member: currentTarget.value })}
      >
        <option value="">any instance</option>
        {members.value.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {isFiltered.value && (
        <button type="button" onClick={() => setQuery({ q: '', state: '', member: '' })}>
          Clear filters
        </button>
      )}
    </search>
  );
}
