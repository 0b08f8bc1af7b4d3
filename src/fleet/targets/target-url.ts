/** What is polled over HTTP. Whether its address may be asked is known only once it has been resolved. */

/** Why this can not be polled, or null. */
export function urlProblem(text: string): string | null {
  const url = parsed(text);
  if (url === null) return 'it is no URL';
  return url.protocol === 'http:' || url.protocol === 'https:'
    ? null
    : 'only http and https are polled';
}

/** A URL as messages may show it: names, passwords, queries and fragments often hold secrets, and paths may. */
export function shownUrl(text: string): string {
  const url = parsed(text);
  return url === null || url.host === '' ? 'text' : `${url.protocol}//${url.host}`;
}

function parsed(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}
