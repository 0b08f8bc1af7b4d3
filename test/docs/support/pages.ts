import { readSource, readTree } from '../../support/source-tree.ts';
import { type Page, readPage } from './markdown.ts';

/** History, and what is generated from source. */
const EXCLUDED = /^docs\/(decisions|reference)\//;

/** All that readers are shown, and that has blocks. */
export function readPages(): Page[] {
  const texts = [
    ...['README.md', 'CONTRIBUTING.md'].map(readSource),
    ...readTree(['docs'], ['.md']).filter(({ path }) => !EXCLUDED.test(path)),
  ];
  return texts.map(({ path, text }) => readPage(path, text));
}
