/** A rule for alerts, as its file has it. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly severity: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/**
 * Reads as much of YAML as our file of alert rules uses: one thing per line, text quoted or plain. What it does not understand it throws
 * for, so that the file can not grow out of it unnoticed.
 */
export function readRules(text: string): AlertRule[] {
  const rules: { alert: string; fields: Record<string, string> }[] = [];
  let section = '';
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line) || /^groups:$|^ {2}- name: |^ {4}rules:$/.test(line)) continue;
    const [, indent = '', key = '', value = ''] = /^( +(?:- )?)([a-z]+): ?(.*)$/.exec(line) ?? [];
    const depth = indent.length;
    const last = rules.at(-1);
    if (indent === '      - ' && key === 'alert') rules.push({ alert: value, fields: {} });
    else if (depth === 8 && value === '') section = key;
    else if (depth === 8 && last !== undefined) last.fields[key] = unquoted(value);
    else if (depth === 10 && last !== undefined) last.fields[`${section}.${key}`] = unquoted(value);
    else throw new Error(`line ${index + 1} is not understood: ${line}`);
  }
  return rules.map(({ alert, fields }) => ({
    ...{ alert, expr: fields.expr ?? '' },
    severity: /^\{ severity: (\w+) \}$/.exec(fields.labels ?? '')?.[1] ?? '',
    annotations: Object.fromEntries(
      Object.entries(fields).flatMap(([name, value]) =>
        name.startsWith('annotations.') ? [[name.slice('annotations.'.length), value]] : [],
      ),
    ),
  }));
}

function unquoted(value: string): string {
  if (!value.startsWith("'")) return value;
  if (!/^'([^']|'')*'$/.test(value)) throw new Error(`not one quoted text: ${value}`);
  return value.slice(1, -1).replaceAll("''", "'");
}
