/** The list of mutants that make no difference, each with the reason. */

/**
 * The list as single entries: `file`, `code` (the line in which the mutant begins), `was`, `becomes` and `why`. In the list,
 * the changes of one line with one reason stand together.
 */
export function entriesOf(list) {
  return list.flatMap(({ changes, ...line }) =>
    changes.map(([was, becomes]) => ({ ...line, was, becomes })),
  );
}

/**
 * Survivors that the list has become `equivalent`. `stale` are entries that fit no survivor: the code has changed, or a test
 * kills the mutant.
 */
export function subtract(mutants, entries) {
  const stale = new Set(entries);
  const judged = mutants.map((mutant) => {
    if (mutant.state !== 'survived' && mutant.state !== 'unreached') return mutant;
    const entry = entries.find((one) => fits(one, mutant));
    if (entry === undefined) return mutant;
    stale.delete(entry);
    return { ...mutant, state: 'equivalent', why: entry.why };
  });
  return { mutants: judged, stale: [...stale] };
}

function fits({ file, code, was, becomes }, mutant) {
  if (file !== mutant.file || code !== mutant.code) return false;
  return was === mutant.was && becomes === mutant.becomes;
}
