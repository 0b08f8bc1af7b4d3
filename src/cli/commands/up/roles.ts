import { ROLES, type Role } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';

/** The roles of an instance. Default: all. */
export function rolesOf(given: unknown = ROLES): ReadonlySet<Role> {
  const refuse = (rule: string) => new ConfigError({ field: 'roles', value: shown(given), rule });
  if (!Array.isArray(given) || given.length === 0)
    throw refuse(`give one or more of ${ROLES.join(', ')}`);
  const named = given.map((role: unknown) => (typeof role === 'string' ? role.trim() : role));
  const unknown = named.find((role) => !ROLES.includes(role as Role));
  if (unknown !== undefined) throw refuse(`unknown role. The roles are ${ROLES.join(', ')}`);
  return new Set(named as Role[]);
}

function shown(given: unknown): unknown {
  return Array.isArray(given) ? given.join(',') : given;
}
