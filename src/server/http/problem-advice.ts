/** For the page of each problem: when it comes about, and what to do. */
import type { ProblemName } from './problem.ts';

export interface Advice {
  readonly when: string;
  readonly advice: string;
}

export const PROBLEM_ADVICE: Readonly<Record<ProblemName, Advice>> = {
  'invalid-request': {
    when: 'A path, a query or a body does not fit what the route takes: a field is missing, unknown, of the wrong kind, or out of range; or the body is no JSON that everybody would read alike (a key twice, a byte order mark, ill-formed Unicode).',
    advice:
      '`errors` names every field that is wrong and the rule it breaks. Nothing was done; correct it and send it again.',
  },
  unauthenticated: {
    when: 'There is no `Authorization: Bearer …` header, it is there twice, or the token is unknown or over.',
    advice:
      'Send a token that is configured on this server. While tokens are changed, both the old and the new one work.',
  },
  forbidden: {
    when: 'The token is known, but its scope does not include what the route needs; or it is of one tenant, and the route is not.',
    advice: 'Use a token with the scope named in `scope`, or one that is of no tenant.',
  },
  'outside-lan': {
    when: 'Networks are configured that clients have to be in, and this client is in none of them, or can not be told.',
    advice:
      'Ask from inside. Behind a proxy: it has to be among the trusted ones, and to send one well-formed `X-Forwarded-For`.',
  },
  'foreign-host': {
    when: 'The `Host` header names a host that this server was not told it is.',
    advice:
      'Use the name it is configured under. The rule keeps foreign pages in a browser from reaching a server on its own network.',
  },
  'foreign-origin': {
    when: 'The `Origin` header says that a page of another site sends something that would change what is here.',
    advice:
      'Nothing was done. Use the page that this server serves, or a program. Behind a proxy: it has to pass `Host` on as the browser sent it.',
  },
  'not-found': {
    when: 'There is no such path, session, instance or problem; or it belongs to another tenant, which is the same.',
    advice: 'Look at the id. Sessions that have ended are forgotten after a while.',
  },
  'method-not-allowed': {
    when: 'There is something under this path, but it can not be asked like this.',
    advice: 'The header `Allow` has the methods that there are.',
  },
  'request-timeout': {
    when: 'Headers or body took too long to arrive. The connection is closed. In logs and metrics also: the client closed the connection before its intent was carried out, and nothing was changed.',
    advice: 'Send it again, in one go.',
  },
  'session-exists': {
    when: 'A session was to be added under an id that another has.',
    advice: 'Nothing was changed. Choose another id, or leave it out and get one.',
  },
  'session-of-intent': {
    when: 'A session that an intent has started was to be paused, resumed or deleted.',
    advice: 'Send an intent of the type `stream.stop` with its id.',
  },
  'lease-busy': {
    when: 'The interface takes leases itself (`HOLDFAST_V3_API_LEASES`), and another session has the channel.',
    advice:
      'Try again after `Retry-After`. With the flag off, which is the default, intents are always accepted, and the session says what came of it.',
  },
  conflict: {
    when: 'Others changed the same thing at the same time; or another program has written something there that can not be read.',
    advice:
      'Read it again, and decide again. What can not be read, correct where it was written, or delete it.',
  },
  'body-too-large': {
    when: 'The body has more than 16 KiB.',
    advice: 'Nothing that is asked for here takes so much: look at what you send.',
  },
  'unsupported-media-type': {
    when: 'The body is not `application/json` in UTF-8.',
    advice: 'Say `Content-Type: application/json`.',
  },
  'too-many-requests': {
    when: 'This server answers as many requests as it may, or the token asks more often than it may, or as many clients watch events as may.',
    advice: 'Wait for as long as `Retry-After` says. Nothing was done.',
  },
  'session-crowded': {
    when: 'So many clients share the session that it takes no more.',
    advice:
      'Give clients that are the same one `clientId`, and send `stream.stop` for those that are gone.',
  },
  internal: {
    when: 'Something happened that should not have.',
    advice: 'The log of the server has it, under the id in `X-Request-Id`. Please report it.',
  },
  'store-unavailable': {
    when: 'The store did not answer, or refused. Nothing was done.',
    advice:
      'Try again after `Retry-After`. The server finds the store again by itself; `holdfast doctor` says what is wrong with it.',
  },
  'store-quarantined': {
    when: 'The interface takes leases itself (`HOLDFAST_V3_API_LEASES`), and the store was just started or has lost data. It may have forgotten leases that are held, so it grants none for a while. Nothing was started.',
    advice:
      'Try again after `Retry-After`, which is when the quarantine ends. With the flag off, which is the default, intents are accepted meanwhile.',
  },
  'outcome-unknown': {
    when: 'The store did not answer in time, after it had been told: it may have been done, or not.',
    advice:
      'An intent is safe to send again: it leads to the same session. For anything else look first.',
  },
  'not-ready': {
    when: 'This instance could not take work now: its store does not answer, it is closing, or a part of it is stalled.',
    advice:
      '`reasons` has all that is wrong. Ask another instance; this one comes back by itself unless it is closing.',
  },
};
