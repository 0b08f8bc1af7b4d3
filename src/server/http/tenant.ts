import { DEFAULT_TENANT } from '../../intents/intent.ts';
import { includes } from './auth.ts';
import type { Caller } from './route.ts';

/** Whose sessions a caller gets to see; null: those of all. Of no tenant and no administrator means of those who name none. */
export function tenantOf({ tenant, scope }: Caller): string | null {
  return tenant ?? (includes(scope, 'v3:admin') ? null : DEFAULT_TENANT);
}
