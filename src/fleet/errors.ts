import { HoldfastError } from '../core/errors.ts';

/** A target was to be moved to an instance that can not have it. */
export class TransferRefusedError extends HoldfastError {
  readonly code = 'TRANSFER_REFUSED';
  readonly target: string;
  readonly member: string;
  /** `draining`: it hands everything over. `foreign`: it is of another make, and is given nothing. */
  readonly why: 'draining' | 'foreign';

  constructor(facts: { target: string; member: string; why: 'draining' | 'foreign' }) {
    const { target, member, why } = facts;
    const reason =
      why === 'draining'
        ? 'is draining: have it take part again first, with undrain'
        : 'is of another make, and takes what it likes: choose another one';
    super(`target '${target}' can not be moved to '${member}', which ${reason}`);
    this.target = target;
    this.member = member;
    this.why = why;
  }
}

/** There is no such instance. */
export class MemberNotFoundError extends HoldfastError {
  readonly code = 'MEMBER_NOT_FOUND';
  readonly member: string;

  constructor(member: string) {
    super(
      `no instance '${member}' is alive. 'holdfast members' lists those that are; an instance that restarts has a new id.`,
    );
    this.member = member;
  }
}
