import { ROLES, type Role } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';

/** What an instance does: all there is, unless it is told. */
export function rolesOf(given: unknown = ROLES): ReadonlySet<Role> {
  const refuse = (rule: string) => new ConfigError({ field: 'roles', value: shown(given), rule });
  if (!Array.isArray(given) || given.length === 0)
    throw refuse(`name one or more of ${ROLES.join(', ')}`);
  const named = given.map((role: unknown) => (typeof role === 'string' ? role.trim() : role));
  const unknown = named.find((role) => !ROLES.includes(role as Role));
  if (unknown !== undefined) throw refuse(`there is no such role; there are ${ROLES.join(', ')}`);
  return new Set(named as Role[]);
}

function shown(given: unknown): unknown {
  return Array.isArray(given) ? given.join(',') : given;
}
