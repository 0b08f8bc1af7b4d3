import { expect, it } from 'vitest';
import { readPage } from '../docs/support/markdown.ts';
import { readSource } from '../support/source-tree.ts';

const settingsIn = (text: string) => text.split('\n').filter((line) => /^\w+=/.test(line));

it('docs/guides/systemd.md shows settings of the unit that is tested, and no others', () => {
  const { path, text } = readSource('docs/guides/systemd.md');
  const unit = readPage(path, text).blocks.find(({ language }) => language === 'ini');
  const shown = settingsIn(unit?.text ?? '');
  const tested = new Set(settingsIn(readSource('examples/deploy/holdfast.service').text));
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.filter((line) => !tested.has(line))).toEqual([]);
});
