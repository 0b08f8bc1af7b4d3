/** Filters that are part of the address, so that a link shows the same. */
import { place, setQuery } from '../router.ts';

/** The search field of a view. */
export function Search({ name, label, hint }: { name: string; label: string; hint: string }) {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <input
        type="search"
        data-search
        placeholder={hint}
        value={place.value.query.get(name) ?? ''}
        onInput={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      />
    </label>
  );
}

/** One of several options; the first one means all, and is not in the address. */
export function Choice({
  name,
  label,
  options,
}: {
  name: string;
  label: string;
  options: Readonly<Record<string, string>>;
}) {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <select
        value={place.value.query.get(name) ?? ''}
        onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      >
        {Object.entries(options).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
