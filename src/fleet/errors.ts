import { defineError } from '../core/errors.ts';

/** The target cannot be moved to this instance. */
export class TransferRefusedError extends defineError(
  'TRANSFER_REFUSED',
  'conflict',
)<{
  target: string;
  member: string;
  /**
   * `draining`: the instance hands everything over. `foreign`: it is a non-Holdfast program.
   * `command`: it does not have the command of the target.
   */
  why: 'draining' | 'foreign' | 'command';
}>(({ target, member, why }) => {
  const reason = {
    draining: "it is draining. Run 'holdfast undrain' first",
    foreign: 'it is a non-Holdfast program. Choose another instance',
    command: 'it does not have the command of this target. Choose an instance that has it',
  }[why];
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
