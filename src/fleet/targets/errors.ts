/** What can be wrong with a session, and with what is polled for one. */
import { HoldfastError } from '../../core/errors.ts';

/** There is a session of this id already. */
export class SessionExistsError extends HoldfastError {
  readonly code = 'SESSION_EXISTS';
  readonly session: string;

  constructor(session: string) {
    super(
      `there is a session '${session}' already; nothing was changed. Remove it first, or choose another id.`,
    );
    this.session = session;
  }
}

/** There is no session of this id. */
export class SessionNotFoundError extends HoldfastError {
  readonly code = 'SESSION_NOT_FOUND';
  readonly session: string;

  constructor(session: string) {
    super(`there is no session '${session}'. Check the id; \`list\` shows all there are.`);
    this.session = session;
  }
}

/** What is stored under a session's name makes no sense as a session. */
export class SessionUnreadableError extends HoldfastError {
  readonly code = 'SESSION_UNREADABLE';
  readonly session: string;
  readonly why: string;

  constructor(facts: { session: string; why: string }) {
    super(
      `session '${facts.session}' can not be read: ${facts.why}. ` +
        'Nothing was changed. Correct it in the program that wrote it, or remove it.',
    );
    this.session = facts.session;
    this.why = facts.why;
  }
}

/** A poll over HTTP brought no answer. An answer of any status is a result, not an error. */
export class PollFailedError extends HoldfastError {
  readonly code = 'POLL_FAILED';
  /** Scheme and host; the rest of a URL may hold secrets. */
  readonly url: string;
  readonly why: string;

  constructor(facts: { url: string; why: string }) {
    super(`poll of ${facts.url} failed: ${facts.why}`);
    this.url = facts.url;
    this.why = facts.why;
  }
}

/** A URL leads to an address that is not to be polled. */
export class AddressRefusedError extends HoldfastError {
  readonly code = 'ADDRESS_REFUSED';
  readonly host: string;
  readonly kind: string;

  constructor(facts: { host: string; kind: string; advice: string }) {
    super(`'${facts.host}' leads to a ${facts.kind} address, and is not polled. ${facts.advice}`);
    this.host = facts.host;
    this.kind = facts.kind;
  }
}

/** A poll took longer than it may. The `reason` of its `signal`. */
export class PollTimeoutError extends HoldfastError {
  readonly code = 'POLL_TIMEOUT';
  readonly target: string;
  readonly timeoutMs: number;

  constructor(target: string, timeoutMs: number) {
    super(
      `the poll of '${target}' took longer than ${timeoutMs} ms and was told to stop. ` +
        'Give polls more time (timeout), or make them end sooner.',
    );
    this.target = target;
    this.timeoutMs = timeoutMs;
  }
}
