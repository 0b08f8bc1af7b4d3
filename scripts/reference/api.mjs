// The pages of what can be imported: one per way into the package, and one per part where that would be too long.
import { declarationOf } from './declaration.mjs';
import { Anchors, line, page, prose, slugOf, table } from './page.mjs';

/** Where things are declared, what that part is called, and the page it has of its own; the first that fits. */
const PARTS = [
  [/^holdfast$/, 'Opening a store'],
  [/^(retention|records)$/, 'Opening a store'],
  [/^config$/, 'Configuration', 'config'],
  [/^lease\/(election|pool\/.*)$/, 'Pools and elections', 'pools'],
  [/^lease\//, 'Leases', 'leases'],
  [/^fleet\/targets\//, 'Targets', 'targets'],
  [/^fleet\/(watch|view|plan)\//, 'The state of the fleet', 'fleet-state'],
  [/^fleet\//, 'Fleet', 'fleet'],
  [/^workflow\/schema$/, 'Types of actions', 'workflow-types'],
  [/^workflow\/(processor|processor-options|attempt|dead-letters)$/, 'Processors', 'processors'],
  [/^workflow\//, 'Workflows', 'workflows'],
  [/^intents\//, 'Intents', 'intents'],
  [/^worker\//, 'Workers', 'workers'],
  [/^core\/(events|gap)$/, 'Events', 'events'],
  [/^telemetry\//, 'Event log', 'event-log'],
  [/^store\/port\/(lease|member|signal)-store$/, 'Store port: leases', 'store-leases'],
  [/^store\/port\/workflow-store$/, 'Store port: workflows', 'store-workflows'],
  [/^store\/port\/run-store$/, 'Store port: workflow functions', 'store-runs'],
  [/^store\/port\/copy-store$/, 'Store port: copies', 'store-copies'],
  [/^store\/port\/stream-store$/, 'Store port: streams', 'store-streams'],
  [/^store\/port\/(intent|log|record)-store$/, 'Store port: sessions and log', 'store-sessions'],
  [/^store\//, 'Stores', 'stores'],
  [/^core\//, 'Clock, random and values', 'values'],
  [/^client\/(client|operator-client)$/, 'The client'],
  [/^client\/(?!.*messages$)/, 'The client'],
  [/^client\/operating-messages$/, 'Messages of operators', 'operating-messages'],
  [/^client\//, 'Messages', 'messages'],
  [/^server\/(http|routes)\//, 'Routes and problems', 'routes'],
  [/^server\//, 'The server'],
  [/^nest\//, 'The module and its decorators'],
  [/^node-cron\//, 'The run coordinator'],
  [/^redlock\//, 'The drop-in'],
  [/^testing\/simulate\//, 'Programs in simulated worlds', 'simulate'],
  [/^testing\/(?!sim\/)/, 'Clocks, faults and conformance'],
  [/^testing\//, 'The simulator', 'simulator'],
  [/./, 'More'],
];

const ERRORS = 'Errors';
const AGAIN = 'Also exported here';
const UNNAMED = 'Named above, and not exported';

/** A declaration stands on one page; other pages link to it. */
export function apiPages(types) {
  const places = new Map();
  return types.doors.flatMap(({ name, exports }) => {
    const first = name.replace('/', '-').replace('holdfast', 'api');
    const pages = pagesOf(first, sectionsOf(exports, types, places));
    for (const { path, sections } of pages)
      place(sections, headingOf(name, path, sections), path, places);
    return pages.map(({ path, sections }) => {
      const others = path === first ? pages.filter((one) => one.path !== first) : [];
      return [path, apiPage({ name, path, first, others }, sections, types, places)];
    });
  });
}

/** The sections by page. A way into the package whose parts all have pages of their own still has a first page. */
function pagesOf(first, sections) {
  const paths = new Map([[first, []]]);
  for (const section of sections) {
    const path = section.page === undefined ? first : `${first}-${section.page}`;
    if (!paths.has(path)) paths.set(path, []);
    paths.get(path).push(section);
  }
  return [...paths].map(([path, parts]) => ({ path, sections: parts }));
}

function headingOf(name, path, [section]) {
  const isPart = section?.page !== undefined && path.endsWith(section.page);
  return isPart ? `\`${name}\`: ${section.title.toLowerCase()}` : `\`${name}\``;
}

function apiPage({ name, path, first, others }, sections, types, places) {
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
  const intro =
    path === first
      ? `What \`import … from '${name}'\` has, as it is declared.`
      : `A part of what \`import … from '${name}'\` has; [all parts](${first}.md).`;
  return page({
    title: headingOf(name, path, sections),
    from: 'the types of the package',
    intro,
    body: [...(others.length > 0 ? [partsTable(others)] : []), ...body].join('\n\n'),
  });
}

function partsTable(others) {
  const rows = others.map(({ path, sections }) => {
    const names = sections
      .filter(({ title }) => title !== UNNAMED)
      .flatMap(({ entries }) => entries);
    return [
      `[${sections[0].title}](${path}.md)`,
      names.map(({ name }) => `\`${name}\``).join(', '),
    ];
  });
  return `## Parts\n\n${table(['page', 'has'], rows)}`;
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
  others.sort((a, b) => (a.name < b.name ? -1 : 1));
  const titles = new Map(PARTS.map(([, title, own]) => [title, own]));
  return [
    ...[...titles].flatMap(([title, own]) => [
      {
        title,
        page: own,
        entries: entries.filter((entry) => entry.title === title && isNew(entry)),
      },
      { title: UNNAMED, page: own, entries: others.filter((entry) => entry.title === title) },
    ]),
    { title: ERRORS, entries: entries.filter(({ title }) => title === ERRORS) },
    { title: AGAIN, entries: entries.filter((one) => one.title !== ERRORS && !isNew(one)) },
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
function place(sections, heading, path, places) {
  const anchors = new Anchors();
  anchors.of(heading);
  if (sections.length > 0 && !path.includes('-')) anchors.of('Parts');
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
