import { describe, expect, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import type {
  AcceptedIntent,
  ApiSession,
  RunSession,
  SessionsPage,
  StartRequest,
  StartVodRequest,
  StopRequest,
} from '../../src/client/index.ts';
import type { acceptedSchema, intentSchema } from '../../src/server/routes/intents.ts';
import type { intentSessionSchema, sessionSchema } from '../../src/server/routes/json/schemas.ts';
import type { pageSchema } from '../../src/server/routes/sessions.ts';
import { nodesOf, readSource } from '../support/source-tree.ts';
import { importsOf } from '../support/tidy-rules.ts';

/** A file and everything it needs when it runs. */
function needed(path: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(path)) return seen;
  const source = readSource(path);
  const specifiers = [...importsOf(source)]
    .filter(({ node }) => !/^(import|export) type\b/.test(node.getText()))
    .map(({ specifier }) => specifier);
  seen.set(path, specifiers);
  for (const specifier of specifiers.filter((each) => each.startsWith('.')))
    needed(new URL(specifier, `file:///${path}`).pathname.slice(1), seen);
  return seen;
}

describe('the client', () => {
  const files = needed('src/client/index.ts');

  it('needs nothing but itself and a little of base', () => {
    expect([...files.keys()].filter((path) => !path.startsWith('src/client/')).sort()).toEqual([
      'src/core/duration.ts',
      'src/core/errors.ts',
      'src/core/loss-reason.ts',
      'src/core/portable-clock.ts',
      'src/core/sleep.ts',
      'src/core/time-text.ts',
    ]);
    expect([...files.values()].flat().filter((each) => !each.startsWith('.'))).toEqual([]);
  });

  it.each([...files.keys()])('uses nothing of Node alone: %s', (path) => {
    const names = new Set([...nodesOf(readSource(path))].map((node) => node.getText()));
    for (const name of ['process', 'Buffer', 'global', 'require', '__dirname', 'setImmediate'])
      expect(names.has(name), name).toBe(false);
  });
});

/** As JSON carries it: what may be absent may also be undefined here. */
type Wire<T> = T extends object ? { [K in keyof T]: Wire<T[K]> } : T;

describe('what the client says and reads', () => {
  it('is what the server takes', () => {
    type Body = z.input<typeof intentSchema>;
    expectTypeOf<{ type: 'stream.start' } & StartRequest>().toExtend<Body>();
    expectTypeOf<{ type: 'vod.start' } & StartVodRequest>().toExtend<Body>();
    expectTypeOf<{ type: 'stream.stop'; sessionId: string } & StopRequest>().toExtend<Body>();
    type Fields<T extends Body['type']> = Exclude<keyof Extract<Body, { type: T }>, 'type'>;
    expectTypeOf<keyof StartRequest>().toEqualTypeOf<Fields<'stream.start'>>();
    expectTypeOf<keyof StartVodRequest | 'start_ms'>().toEqualTypeOf<Fields<'vod.start'>>();
    expectTypeOf<keyof StopRequest | 'sessionId'>().toEqualTypeOf<Fields<'stream.stop'>>();
  });

  it('is what the server gives', () => {
    type Given<S extends z.ZodType> = Wire<z.output<S>>;
    expectTypeOf<Given<typeof acceptedSchema>>().toExtend<AcceptedIntent>();
    expectTypeOf<Given<typeof sessionSchema>>().toExtend<ApiSession>();
    expectTypeOf<Given<typeof intentSessionSchema>>().toExtend<RunSession>();
    expectTypeOf<Given<typeof pageSchema>>().toExtend<SessionsPage>();
    // And nothing that the client leaves out.
    expectTypeOf<keyof AcceptedIntent>().toEqualTypeOf<keyof Given<typeof acceptedSchema>>();
    type Kind = 'live' | 'vod' | 'poll';
    type Fields<T, K extends Kind> = T extends { readonly kind: K } ? keyof T : never;
    expectTypeOf<{ [K in Kind]: Fields<ApiSession, K> }>().toEqualTypeOf<{
      [K in Kind]: Fields<z.output<typeof sessionSchema>, K>;
    }>();
  });
});
