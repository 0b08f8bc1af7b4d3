// Every key of holdfast.config.mjs, from the type that checks it, and what the environment may say.
import { environmentText } from './environment.mjs';
import { code, line, page, table } from './page.mjs';

export function configurationPage(root, types) {
  const config = types.exportsOf(types.file('config')).get('HoldfastConfig');
  const rows = keysOf(types.declaredType(config), '', types);
  return page({
    title: 'Configuration',
    from: 'src/config.ts',
    intro:
      'What `holdfast.config.mjs` may say: `export default defineConfig({ … })`. Keys that are not among these are refused. A flag wins over the environment, and that over the file.',
    byHand:
      'The flags are in [every command](cli.md#holdfast-up), and how to choose a store in [the command line](../cli.md#which-store).',
    body: [
      '## The file',
      table(['key', 'default', 'what it says'], rows),
      '`Duration` is a number of milliseconds, or text: `"250ms"`, `"30s"`, `"5m"`, `"1.5h"`, `"7d"`.',
      '## The environment',
      environmentText(root),
    ].join('\n\n'),
  });
}

function keysOf(type, before, types) {
  return types.propertiesOf(type).flatMap((property) => {
    const path = `${before}${property.name}`;
    const own = types.withoutUndefined(types.typeOf(property));
    const { meaning, value } = split(types.docOf(property));
    const inner = isSection(own, types) ? keysOf(own, `${path}.`, types) : [];
    const shown = types.textOfProperty(property).replaceAll('readonly ', '');
    const what =
      inner.length > 0 ? meaning : `${code(shown)}${meaning === '' ? '' : ': '}${meaning}`;
    return [[code(path), value, what.trim()], ...inner];
  });
}

/** An object with keys that we have named; not a function, a list, or what anybody may name. */
function isSection(type, types) {
  if (type.isUnion() || type.getCallSignatures().length > 0) return false;
  const properties = types.propertiesOf(type);
  return properties.length > 0 && properties.every((property) => types.pathOf(property) !== null);
}

/** The default stands in the comment, as `default 30 s`: behind the meaning, or as a sentence of its own. */
function split(doc) {
  const text = line(doc);
  const found = /(^|[;,.] )default:? ((?:[^;.`]|`[^`]*`|\.(?! |$))+)([;.]|$) ?/i.exec(text);
  if (found === null) return { meaning: text, value: '' };
  const before = text.slice(0, found.index);
  const meaning = `${before}${before === '' ? '' : '. '}${text.slice(found.index + found[0].length)}`;
  return { meaning: meaning.trim(), value: found[2] };
}
