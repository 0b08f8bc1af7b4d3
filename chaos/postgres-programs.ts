import { postgresPrograms } from '../test/support/postgres-server.ts';
import { install, pathOf, thisMachine } from '../test/support/require-redis.ts';

/** A program that a run needs is not installed, and may not be installed by the run. */
export class MissingProgramError extends Error {}

/** Debian's packages, by the programs of theirs that a run starts. */
const PACKAGES: Readonly<Record<string, string>> = {
  pgbouncer: 'pgbouncer',
  patroni: 'patroni',
  etcd: 'etcd-server',
};
/** Debian has some where only root looks. */
const PATH = `${process.env.PATH}:/usr/sbin`;

/** Where PostgreSQL's programs are. Installs what is missing, as root. */
export function requirePostgres(others: readonly string[]): { readonly programs: string } {
  const programs = postgresPrograms();
  const absent = () => others.filter((name) => pathOf(name, PATH) === undefined);
  const packages = absent().map((name) => PACKAGES[name] ?? name);
  if (programs !== null && packages.length > 0 && thisMachine.isRoot) {
    thisMachine.say(`not installed: ${packages.join(', ')}; installing with apt-get …`);
    install(thisMachine, packages);
  }
  if (programs !== null && absent().length === 0) return { programs };
  const missing = [...(programs === null ? ['postgresql'] : []), ...packages].join(' ');
  throw new MissingProgramError(`this topology needs ${missing}: apt-get install ${missing}`);
}
