import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { rolesOf } from '../../src/cli/commands/up/roles.ts';
import { readSource } from '../support/source-tree.ts';
import { importsOf } from '../support/tidy-rules.ts';

describe('the roles of an instance', () => {
  it('are all there are, unless it is told', () => {
    expect([...rolesOf(undefined)]).toEqual(['api', 'poller', 'worker']);
    expect([...rolesOf(['worker'])]).toEqual(['worker']);
    expect([...rolesOf(['poller'])]).toEqual(['poller']);
    expect([...rolesOf(['api', ' poller', 'api'])]).toEqual(['api', 'poller']);
  });

  it.each([
    [['api', ''], /The roles are api, poller, worker/],
    [['API'], /The roles are api, poller, worker/],
    [['workers'], /The roles are api, poller, worker/],
    [[7], /The roles are api, poller, worker/],
    [[], /give one or more of api, poller, worker/],
    ['api', /give one or more/],
    [null, /give one or more/],
  ])('are not %j', (roles, rule) => {
    expect(() => rolesOf(roles)).toThrow(expect.objectContaining({ field: 'roles' }));
    expect(() => rolesOf(roles)).toThrow(rule);
  });
});

/** What is loaded with a file: all it imports, and what that does; but nothing that is loaded later, where it is needed. */
function loadedWith(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  for (const { node, specifier } of importsOf(readSource(path))) {
    const isLater = ts.isCallExpression(node) || /^(import|export) type\b/.test(node.getText());
    if (isLater || ts.isImportTypeNode(node)) continue;
    if (!specifier.startsWith('.')) seen.add(specifier);
    else loadedWith(new URL(specifier, `file:///${path}`).pathname.slice(1), seen);
  }
  return seen;
}

describe('what the server is made of', () => {
  const ofServer = /^(@?hono|zod|prom-client)\b/;

  it.each([
    'src/cli/commands/up/up.ts',
    'src/cli/bin.ts',
    'src/cli/commands/intents/start.ts',
    'src/cli/commands/targets/targets.ts',
    'src/index.ts',
    'testing/index.ts',
    'src/client/index.ts',
  ])('is not loaded with %s', (path) => {
    expect([...loadedWith(path)].filter((name) => ofServer.test(name))).toEqual([]);
  });

  it('is loaded where it is needed', () => {
    const names = loadedWith('src/cli/commands/up/up-server.ts');
    expect([...names].some((name) => ofServer.test(name))).toBe(true);
  });
});
