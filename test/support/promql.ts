/** What an expression of PromQL names: metrics, with what is said of their labels, and the labels that it adds up by. */
export interface Named {
  readonly selectors: readonly { readonly metric: string; readonly matchers: readonly Matcher[] }[];
  readonly grouping: readonly string[];
}

export interface Matcher {
  readonly label: string;
  readonly values: readonly string[];
}

export function namedIn(expr: string): Named {
  const selectors = [...expr.matchAll(/\b(holdfast_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, metric = '', inside = '']) => ({ metric, matchers: matchersIn(inside) }),
  );
  const lists = [...expr.matchAll(/\b(?:by|on|without|ignoring) ?\(([^)]*)\)/g)];
  const grouping = lists.flatMap(([, list = '']) => list.split(',').map((name) => name.trim()));
  return { selectors, grouping };
}

function matchersIn(text: string): Matcher[] {
  if (text.trim() === '') return [];
  return text.split(/,(?=\s*\w+\s*[=!])/).map((part) => {
    const [, label, operator = '', value = ''] =
      /^\s*(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"\s*$/.exec(part) ?? [];
    if (label === undefined) throw new Error(`not a matcher: ${part}`);
    return { label, values: operator.endsWith('~') ? value.split('|') : [value] };
  });
}
