// A page for each way into the package: everything that can be imported from it, as it is declared.
import { declarationOf } from './declaration.mjs';
import { Anchors, line, page, prose, slugOf, table } from './page.mjs';

/** Where things are declared, and what that part is called; the first that fits. */
const PARTS = [
  [/^holdfast$/, 'Opening it'],
  [/^(config|retention|records)$/, 'Opening it'],
  [/^lease\/(lease|leases)$/, 'Leases'],
  [/^lease\//, 'Leases'],
  [/^fleet\//, 'A fleet that polls'],
  [/^workflow\//, 'Workflows'],
  [/^intents\//, 'Intents'],
  [/^worker\//, 'Workers'],
  [/^core\/events$|^telemetry\//, 'What happened'],
  [/^store\//, 'Stores'],
  [/^core\//, 'Time, chance and values'],
  [/^client\/(client|operator-client)$/, 'The client'],
  [/^client\/(?!.*messages$)/, 'The client'],
  [/^client\//, 'What goes over the wire'],
  [/^server\/app$/, 'The server'],
  [/^server\//, 'The server'],
  [/^redlock\/redlock$/, 'The drop-in'],
  [/^redlock\//, 'The drop-in'],
  [/^testing\/(?!sim\/)/, 'Clocks, faults, conformance'],
  [/^testing\//, 'The simulator'],
  [/./, 'All of it'],
];

const ERRORS = 'Errors';
const AGAIN = 'The same as elsewhere';
const UNNAMED = 'Named above, and not exported';

/** What one page has is not repeated on the next, but linked to. */
export function apiPages(types) {
  const places = new Map();
  return types.doors.map(({ name, exports }) => {
    const path = name.replace('/', '-').replace('holdfast', 'api');
    return [path, apiPage({ name, path }, exports, types, places)];
  });
}

function apiPage({ name, path }, exports, types, places) {
  const sections = sectionsOf(exports, types, places);
  place(sections, path, places);
  const linkTo = (symbol) => {
    const found = places.get(symbol);
    if (found === undefined) return null;
    return `[${found.name}](${found.path === path ? '' : `${found.path}.md`}#${found.anchor})`;
  };
  const body = sections.map(({ title, entries }) => {
    const texts = entries.map((entry) => entryText(entry, linkTo, types));
    if (title === ERRORS) texts.splice(0, texts.length, errorsTable(entries, types));
    if (title === AGAIN) texts.splice(0, texts.length, listed(entries, linkTo));
    return `## ${title}\n\n${texts.join('\n\n')}`;
  });
  return page({
    title: `\`${name}\``,
    from: 'the types of the package',
    intro: `Everything that \`import … from '${name}'\` has, as it is declared.`,
    body: body.join('\n\n'),
  });
}

/** What is exported, by part; and what their types name that is not exported, so that nothing is left unsaid. */
function sectionsOf(exports, types, places) {
  const exported = new Set(exports.values());
  const isExported = (symbol) => exported.has(symbol);
  const files = [...new Set([...exported].map((symbol) => types.pathOf(symbol)))];
  const entries = [...exports]
    .map(([name, symbol]) => entryOf(name, symbol, types, isExported))
    .sort(
      (a, b) => a.rank - b.rank || files.indexOf(a.file) - files.indexOf(b.file) || a.turn - b.turn,
    );
  const isNew = ({ symbol, title }) => title !== ERRORS && !places.has(symbol);
  const known = new Set(exported);
  const others = [];
  for (let next = entries.filter(isNew); next.length > 0; ) {
    next = [...new Set(next.flatMap(({ named }) => named))]
      .filter((symbol) => !known.has(symbol) && !places.has(symbol))
      .map((symbol) => entryOf(symbol.name, symbol, types, isExported))
      .filter(({ title }) => title !== ERRORS);
    for (const { symbol } of next) known.add(symbol);
    others.push(...next);
  }
  const titles = new Set(PARTS.map(([, title]) => title));
  return [
    ...[...titles].map((title) => ({
      title,
      entries: entries.filter((entry) => entry.title === title && isNew(entry)),
    })),
    { title: ERRORS, entries: entries.filter(({ title }) => title === ERRORS) },
    { title: AGAIN, entries: entries.filter((one) => one.title !== ERRORS && !isNew(one)) },
    { title: UNNAMED, entries: others.sort((a, b) => (a.name < b.name ? -1 : 1)) },
  ].filter((section) => section.entries.length > 0);
}

function entryOf(name, symbol, types, isExported) {
  const path = types.pathOf(symbol);
  const isError = types.extendsError(symbol) && /^(?!redlock).*\berrors$/.test(path);
  const rank = PARTS.findIndex(([pattern]) => pattern.test(path));
  const title = isError ? ERRORS : PARTS[rank][1];
  // What is called comes before what it takes.
  const turn = types.isCallable(symbol) ? 0 : 1;
  const entry = { name, symbol, file: path, rank, turn, title };
  return { ...entry, ...declarationOf(symbol, types, isExported) };
}

/** Writes down where on which page everything is. */
function place(sections, path, places) {
  const anchors = new Anchors();
  anchors.of(path.replace('api', 'holdfast').replace('-', ''));
  for (const { title, entries } of sections) {
    anchors.of(title);
    if (title === ERRORS || title === AGAIN) continue;
    for (const { name, symbol } of entries)
      places.set(symbol, { name, path, anchor: anchors.of(name) });
  }
}

function entryText({ name, symbol, text, named }, linkTo, types) {
  const links = named.map(linkTo).filter((link) => link !== null);
  return [
    `### ${name}`,
    prose(types.docOf(symbol)),
    `\`\`\`ts\n${text}\n\`\`\``,
    links.length > 0 ? `With ${links.join(', ')}.` : '',
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function listed(entries, linkTo) {
  return `${entries.map(({ symbol }) => linkTo(symbol)).join(', ')}.`;
}

function errorsTable(entries, types) {
  const rows = entries.map(({ name, symbol }) => {
    const code = codeOf(symbol, types);
    const link = code === null ? `\`${name}\`` : `[\`${name}\`](errors.md#${slugOf(code)})`;
    return [link, code === null ? '' : `\`${code}\``, line(types.docOf(symbol))];
  });
  return table(['class', 'code', ''], rows);
}

/** Null for what has none of its own. */
export function codeOf(symbol, types) {
  const code = types.propertiesOf(types.declaredType(symbol)).find(({ name }) => name === 'code');
  const type = code === undefined ? undefined : types.typeOf(code);
  return type?.isStringLiteral() ? type.value : null;
}
