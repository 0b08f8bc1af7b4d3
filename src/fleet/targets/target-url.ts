/** The URL of a target. Whether its address may be polled is known only after it is resolved. */

/** Why this cannot be polled, or null. */
export function urlProblem(text: string): string | null {
  const url = parsed(text);
  if (url === null) return 'it is no URL';
  return url.protocol === 'http:' || url.protocol === 'https:'
    ? null
    : 'only http and https are polled';
}

/** A URL as messages may show it: everything but scheme and host may hold secrets. */
export function shownUrl(text: string): string {
  const url = parsed(text);
  return url === null || url.host === '' ? 'text' : `${url.protocol}//${url.host}`;
}

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
