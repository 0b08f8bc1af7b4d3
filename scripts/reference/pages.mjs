// All pages of the reference: name → text. The same sources give the same pages, to the byte.
import { apiPages } from './api.mjs';
import { commandLinePages } from './command-line.mjs';
import { configurationPage } from './configuration.mjs';
import { errorsPage } from './errors.mjs';
import { eventsPages } from './events.mjs';
import { httpPages } from './http.mjs';
import { messagesPage } from './messages.mjs';
import { metricsPage } from './metrics.mjs';
import { problemsPage } from './problems.mjs';
import { TypedPackage } from './typed-package.mjs';

export async function referencePages(root) {
  const types = new TypedPackage(root);
  return new Map([
    ...apiPages(types),
    ...(await commandLinePages(root)),
    ['configuration', configurationPage(root, types)],
    ['errors', await errorsPage(root, types)],
    ...(await eventsPages(root, types)),
    ...(await httpPages(root)),
    ['messages', await messagesPage(root, types)],
    ['metrics', await metricsPage(root)],
    ['problems', await problemsPage(root)],
  ]);
}
