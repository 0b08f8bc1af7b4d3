import { postgresPrograms } from '../test/support/postgres-server.ts';
import { pathOf, requirePrograms, thisMachine } from '../test/support/require-redis.ts';

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
  const absent = others.filter((name) => pathOf(name, PATH) === undefined);
  if (programs !== null && absent.length === 0) return { programs };
  if (programs !== null && thisMachine.isRoot) {
    const packages = absent.map((name) => PACKAGES[name] ?? name);
    requirePrograms({ ...thisMachine, env: { ...thisMachine.env, PATH } }, packages);
    return { programs };
  }
  const packages = [
    ...(programs === null ? ['postgresql'] : []),
    ...absent.map((name) => PACKAGES[name] ?? name),
  ];
  throw new MissingProgramError(
    `this topology needs ${packages.join(', ')}: apt-get install ${packages.join(' ')}`,
  );
}
