import { expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
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

it('docs/guides/kubernetes.md shows the probes and the stopping of the manifest that is tested', () => {
  const { path, text } = readSource('docs/guides/kubernetes.md');
  const first = readPage(path, text).blocks.find(({ language }) => language === 'yaml');
  const { spec: shown } = parse(first?.text ?? '') as { spec: PodSpec };
  const manifest = readSource('examples/deploy/kubernetes/base/api.yaml').text;
  const [deployment] = parseAllDocuments(manifest).map((document) => document.toJS());
  const tested: PodSpec = deployment.spec.template.spec;
  expect(shown.terminationGracePeriodSeconds).toBe(tested.terminationGracePeriodSeconds);
  // The guide names the port by its number.
  const ported = JSON.parse(JSON.stringify(tested.containers[0]).replaceAll('"http"', '4747'));
  expect(ported).toMatchObject({ ...shown.containers[0], env: expect.any(Array) });
});

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly object[];
}
