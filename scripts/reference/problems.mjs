// Every problem that a server answers with, as the server's own pages have it.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { page, prose } from './page.mjs';

export async function problemsPage(root) {
  const path = join(root, 'dist/server/http/problem.js');
  const { PROBLEMS } = await import(pathToFileURL(path).href);
  return page({
    title: 'Every problem',
    from: 'src/server/http/problem.ts',
    intro: 'The error responses of the API, by the last part of their `type`.',
    byHand: 'How to read one is in [Problems](../problems.md).',
    body: Object.entries(PROBLEMS)
      .map(([name, { status, title, when, advice }]) => {
        const code = name.toUpperCase().replaceAll('-', '_');
        return `## ${name}\n\n${status} \`${code}\`: ${prose(title)}.\n\n${prose(when)}\n\n${prose(advice)}`;
      })
      .join('\n\n'),
  });
}
