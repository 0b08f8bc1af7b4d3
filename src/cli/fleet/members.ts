import { MemberNotFoundError } from '../../base/errors.ts';
import { shortName } from '../../base/ids.ts';
import type { MemberView } from '../../fleet.ts';
import type { Context } from '../context.ts';
import { EXIT, type Exit, usageError } from '../exit-codes.ts';
import { withHoldfast } from '../opening.ts';
import { jsonFacts, printable, spanOf, table } from '../text.ts';

export async function members({ flags, output }: Context): Promise<Exit> {
  const view = await withHoldfast(flags, (holdfast) => holdfast.fleet.view());
  output.result(
    view.members.map((member) => jsonFacts({ ...member })),
    () => {
      if (view.members.length === 0) return 'No instance runs. Start one: holdfast up\n';
      const rows = view.members.map((member) => [
        printable(shortName(member.id)),
        stateOf(member),
        String(member.owned),
        member.isForeign ? '-' : String(member.quota),
        member.isForeign ? '-' : String(member.weight),
        spanOf(member.expiresInMs),
        printable(member.version ?? '-'),
        printable(member.id),
      ]);
      const [head = '', ...lines] = table([
        ['NAME', 'STATE', 'OWNS', 'SHARE', 'WEIGHT', 'HEARTBEAT ENDS IN', 'VERSION', 'ID'],
        ...rows,
      ]).split('\n');
      return [output.style('bold', head), ...lines].join('\n');
    },
  );
  return EXIT.ok;
}

export function stateOf({ isForeign, isDraining }: MemberView): string {
  if (isForeign) return 'foreign';
  return isDraining ? 'draining' : 'up';
}

/** The member that is meant: by its id, as it is shown, by its name, or by how one of these begins, if that is unique. */
export function findMember(all: readonly MemberView[], text: string): MemberView {
  const exact = all.filter(({ id, name }) => [id, shortName(id), name].includes(text));
  const byId = exact.find(({ id }) => id === text || shortName(id) === text);
  const found =
    byId !== undefined
      ? [byId]
      : exact.length > 0
        ? exact
        : all.filter(({ id }) => [id, shortName(id)].some((form) => form.startsWith(text)));
  const [member] = found;
  if (member === undefined || text === '') throw new MemberNotFoundError(text);
  if (found.length === 1) return member;
  const names = found.map(({ id }) => shortName(id)).join(', ');
  throw usageError(`'${text}' may be ${names}. Say which.`);
}
