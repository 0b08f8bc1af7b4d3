import type { Output } from '../../ui/output.ts';
import { printable, spanOf } from '../../ui/text.ts';

const TRY_COLUMNS = 22;

/** The addresses and names of a demo. Programs get them as JSON. */
export interface DemoFacts {
  /** Opens the page once, within ten minutes, without a token. */
  readonly page: string;
  readonly url: string;
  /** Has all rights while the demo runs. */
  readonly token: string | null;
  /** An address to type, without secrets. */
  readonly store: string;
  readonly prefix: string;
  readonly instances: readonly { readonly name: string; readonly pid: number | null }[];
}

/** Says what runs, the address of the page, and what to try. */
export function greeting(facts: DemoFacts, ttlMs: number, output: Output): string {
  const { page, token, store, prefix, instances } = facts;
  const names = new Intl.ListFormat('en-GB').format(instances.map(({ name }) => name));
  const [first, second] = instances;
  const prefixed = prefix === '' ? '' : ` HOLDFAST_PREFIX=${prefix}`;
  const tries = [
    [`kill -9 ${first?.pid}`, `kills ${first?.name}`],
    [`kill -STOP ${second?.pid}`, `freezes ${second?.name}; -CONT thaws it`],
    [
      'npx holdfast top',
      `who owns what, live; also map, watch, slots, workflows ls, explain cairo`,
    ],
  ] as const;
  return `${names} poll a dozen weather stations that do not exist, each in a process of its own.

  ${output.style('bold', page)}

  Kill, freeze and thaw them there: within ${spanOf(ttlMs)} and a moment others have taken over.
  Or in another terminal:
    export HOLDFAST_STORE=${printable(store)}${prefixed}
${tries.map(([what, why]) => `    ${what.padEnd(TRY_COLUMNS)}${why}\n`).join('')}
  The address lets in once, within ten minutes. After that, with a token:
    ${token}

  Ctrl-C ends everything.

`;
}

/** A login at the beginning of an address: its user, and its password with the colon. */
const LOGIN = /^[^/]*:\/\/([^/:@?#]+)(:[^/@?#]*)?@/;

/** The name of a store, which has no login, with that of its address. A password becomes `…`. */
export function typeable(name: string, address = ''): string {
  const [, user, password] = LOGIN.exec(address) ?? [];
  if (user === undefined) return name;
  return name.replace('://', `://${user}${password === undefined ? '' : ':…'}@`);
}
