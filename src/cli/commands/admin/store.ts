import { UNFINISHED_FORMAT, UNFINISHED_PROBLEM } from '../../../store/port/store.ts';
import {
  installStore,
  type StoreStatus,
  storeStatus,
  uninstallStore,
  upgradeStore,
} from '../../../store/postgres/administration.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { readSettings } from '../../settings.ts';

export interface StoreInstallFlags {
  readonly grant?: string;
}

/** `holdfast store install`. */
export async function install(
  context: Context,
  address: string | undefined,
  { grant }: StoreInstallFlags,
): Promise<Exit> {
  const status = await installStore(await addressOf(context, address), grant);
  const rights = grant === undefined ? '' : ` Role ${grant} may use it.`;
  return print(
    context,
    status,
    `Installed version ${status.version} in schema ${status.schema}.${rights}\n`,
  );
}

/** `holdfast store status`. Exits with 1 if it is not installed. */
export async function status(context: Context, address: string | undefined): Promise<Exit> {
  const found = await storeStatus(await addressOf(context, address));
  const { schema, version, known, held, bytes, timeline } = found;
  if (version === null) {
    print(context, found, `Schema ${schema} is not installed: run 'holdfast store install'.\n`);
    return EXIT.no;
  }
  const size = `${Math.ceil(bytes / 1_024)} KB`;
  const text = `Schema ${schema}, version ${version}: ${held} leases held, ${size}, timeline ${timeline}.\n`;
  return print(context, found, `${text}${otherVersion(version, known)}`);
}

function otherVersion(version: number, known: number): string {
  if (version === known) return '';
  if (version === UNFINISHED_FORMAT) return `${UNFINISHED_PROBLEM}\n`;
  const advice =
    version < known ? "Run 'holdfast store upgrade'." : 'Use the Holdfast that made it.';
  return `This Holdfast uses version ${known}. ${advice}\n`;
}

/** `holdfast store upgrade`. Exits with 1 if it is not installed. */
export async function upgrade(context: Context, address: string | undefined): Promise<Exit> {
  const found = await upgradeStore(await addressOf(context, address));
  const { schema, before, version } = found;
  if (before === null) {
    print(context, found, `Schema ${schema} is not installed: run 'holdfast store install'.\n`);
    return EXIT.no;
  }
  const text =
    before === version
      ? `Schema ${schema} has version ${version} already.\n`
      : `Upgraded schema ${schema} from version ${before} to ${version}.\n`;
  return print(context, found, text);
}

/** `holdfast store uninstall`. */
export async function uninstall(
  context: Context,
  address: string | undefined,
  { yes = false }: { readonly yes?: boolean },
): Promise<Exit> {
  if (!yes)
    throw new CliError(
      EXIT.usage,
      'CONFIG_INVALID',
      'uninstall drops all leases, records, workflows and sessions of the store. Pass --yes to do it.',
    );
  const status = await uninstallStore(await addressOf(context, address));
  return print(context, status, `Dropped schema ${status.schema}.\n`);
}

/** The address that the command was given, or that of the configured store. */
export async function addressOf({ flags }: Context, given?: string): Promise<string> {
  const address = given ?? (await readSettings(flags)).store;
  if (address !== undefined) return address;
  const message =
    'no store is named. Pass its address with --store or HOLDFAST_STORE: postgres://admin@db/app';
  throw new CliError(EXIT.usage, 'CONFIG_INVALID', message);
}

function print({ output }: Context, status: StoreStatus, text: string): Exit {
  output.result(status, () => text);
  return EXIT.ok;
}
