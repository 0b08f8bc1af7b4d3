import { ConfigError } from '../../core/errors.ts';
import { parseAddress } from './address.ts';
import { type PostgresLink, urlDialer } from './dialer.ts';
import { dialError, sentError } from './failures.ts';

const DIAL_MS = 10_000;

/** The store that a command administers. */
export interface Administered {
  readonly name: string;
  readonly schema: string;
}

/** Connects for `work`, and ends the connection. */
export async function withLink<R>(
  address: string,
  operation: string,
  work: (link: PostgresLink, to: Administered) => Promise<R>,
): Promise<R> {
  if (!/^postgres(ql)?:/.test(address)) {
    const rule =
      'this command is for PostgreSQL: postgres://app@db/app. Other stores need no installation, and have no fenced tables';
    throw new ConfigError({ field: 'store', value: address.split(':', 1)[0], rule });
  }
  const to = parseAddress(address);
  const where = { store: to.name, operation };
  const dialer = await urlDialer(to.urls, null, undefined);
  const link = await dialer.dial(DIAL_MS, false).catch((error: unknown) => {
    throw dialError(error, where);
  });
  try {
    return await work(link, to);
  } catch (error) {
    throw sentError(error, where, 0);
  } finally {
    link.destroy();
  }
}
