import { defineError } from '../core/errors.ts';

/** The target cannot be moved to this instance. */
export class TransferRefusedError extends defineError(
  'TRANSFER_REFUSED',
  'conflict',
)<{
  target: string;
  member: string;
  /** `draining`: the instance hands everything over. `foreign`: it is a non-Holdfast program. */
  why: 'draining' | 'foreign';
}>(({ target, member, why }) => {
  const reason =
    why === 'draining'
      ? "it is draining. Run 'holdfast undrain' first"
      : 'it is a non-Holdfast program. Choose another instance';
  return `cannot move target '${target}' to '${member}': ${reason}`;
}) {}

/** No instance of this id is alive. */
export class MemberNotFoundError extends defineError(
  'MEMBER_NOT_FOUND',
  'not-found',
)<{
  member: string;
}>(
  ({ member }) =>
    `no instance '${member}' is alive. 'holdfast members' lists those that are; an instance that restarts has a new id.`,
) {}
