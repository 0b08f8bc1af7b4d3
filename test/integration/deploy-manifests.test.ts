import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Deployment, StatefulSet } from 'kubernetes-models/apps/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Namespace, Secret, Service } from 'kubernetes-models/v1';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { ROOT } from '../support/packed-package.ts';
import { pathOf } from '../support/require-redis.ts';
import { privateFolder } from './support/cli.ts';
import { ALL, type Manifest, readDeploy } from './support/manifests.ts';

const SCHEMAS = {
  ...{ ConfigMap, Deployment, Namespace, PodDisruptionBudget, Secret, Service, StatefulSet },
};
type Kind = keyof typeof SCHEMAS;
const MODULES: Readonly<Record<Kind, string>> = {
  ConfigMap: 'v1',
  Deployment: 'apps/v1',
  Namespace: 'v1',
  PodDisruptionBudget: 'policy/v1',
  Secret: 'v1',
  Service: 'v1',
  StatefulSet: 'apps/v1',
};
const OVERLAYS = ['dev', 'prod'];
/** The compiler reads the declarations of the API. */
const SLOW = { timeout: 120_000 };

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly patches: readonly { path: string; target?: { kind: string; name: string } }[];
  readonly replicas: readonly { name: string; count: number }[];
}

const documents = (path: string): Manifest[] =>
  parseAllDocuments(readDeploy(`kubernetes/${path}`)).map((one) => one.toJS() as Manifest);
const overlay = (name: string): Kustomization =>
  parse(readDeploy(`kubernetes/overlays/${name}/kustomization.yaml`));
const isKind = (kind: string): kind is Kind => Object.hasOwn(SCHEMAS, kind);

/** What the schema of the API says of a manifest: its types, and what it must have. */
function schemaProblem(manifest: Manifest): string | null {
  if (!isKind(manifest.kind)) return `no schema for ${manifest.kind}`;
  try {
    new SCHEMAS[manifest.kind](manifest as never).validate();
    return null;
  } catch (error) {
    return String(error);
  }
}

/** What the types of the API say of manifests: a field that they do not know. The schemas let it pass. */
function typeProblems(manifests: readonly Manifest[]): string[] {
  const folder = privateFolder();
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
  const lines = manifests.flatMap((manifest, i) => {
    if (!isKind(manifest.kind)) return [];
    const type = `import('kubernetes-models/${MODULES[manifest.kind]}').I${manifest.kind}`;
    return [`export const m${i}: ${type} = ${JSON.stringify(manifest)};`];
  });
  const file = join(folder, 'manifests.mts');
  writeFileSync(file, lines.join('\n'));
  const program = ts.createProgram([file], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [] },
  });
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('the manifests of examples/deploy/kubernetes', () => {
  const files = [
    ...['overlays/dev/namespace.yaml', 'overlays/dev/redis.yaml'],
    'overlays/prod/namespace.yaml',
  ];
  const whole = [...ALL, ...files.flatMap(documents)];

  it(
    'are what the schemas of the Kubernetes API say, and have no field that it does not know',
    SLOW,
    () => {
      expect(whole.length).toBeGreaterThan(10);
      expect(whole.map(schemaProblem).filter((problem) => problem !== null)).toEqual([]);
      expect(typeProblems(whole)).toEqual([]);
    },
  );

  it(
    'would be refused with a text for a number, and with a field that does not exist',
    SLOW,
    () => {
      const [deployment] = ALL.filter(({ kind }) => kind === 'Deployment');
      const text = JSON.stringify(deployment);
      const wrong: Manifest = JSON.parse(text.replace(/"replicas":\d+/, '"replicas":"three"'));
      expect(schemaProblem(wrong)).toContain('replicas must be integer');
      const unknown: Manifest = JSON.parse(text.replace('"preStop"', '"beforeStop"'));
      expect(typeProblems([unknown])).toEqual([
        expect.stringMatching(/beforeStop.* does not exist/),
      ]);
    },
  );

  it.each(OVERLAYS)('of the overlay %s patch and count what the base has', (name) => {
    const { resources, patches, replicas } = overlay(name);
    const bases = resources.filter((path) => path === '../../base');
    expect(bases).toHaveLength(1);
    const known = new Set(ALL.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
    for (const { path, target } of patches) {
      const [patch] = documents(`overlays/${name}/${path}`);
      expect(known).toContain(`${patch?.kind}/${patch?.metadata.name}`);
      if (target !== undefined)
        expect(target).toEqual({ kind: patch?.kind, name: patch?.metadata.name });
    }
    const workloads = ALL.filter(({ spec }) => spec?.replicas !== undefined);
    for (const { name: counted } of replicas)
      expect(workloads.map(({ metadata }) => metadata.name)).toContain(counted);
  });

  it.each(OVERLAYS)(
    'of the overlay %s are rendered by Kustomize, where kubectl has it, into what the API knows',
    SLOW,
    async (name) => {
      const kubectl = pathOf('kubectl', process.env.PATH);
      const folder = fileURLToPath(
        new URL(`../../examples/deploy/kubernetes/overlays/${name}`, import.meta.url),
      );
      if (kubectl === undefined)
        return console.warn(`kubectl is not installed: ${folder} is not rendered`);
      const { stdout, stderr, status } = spawnSync(kubectl, ['kustomize', folder], {
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const rendered = parseAllDocuments(stdout).map((one) => one.toJS() as Manifest);
      expect(rendered.length).toBeGreaterThan(ALL.length);
      expect(rendered.map(schemaProblem).filter((problem) => problem !== null)).toEqual([]);
      expect(typeProblems(rendered)).toEqual([]);
      const { replicas, namespace } = overlay(name);
      const others = rendered.filter(({ kind }) => kind !== 'Namespace');
      expect(new Set(others.map(({ metadata }) => metadata.namespace))).toEqual(
        new Set([namespace]),
      );
      for (const { name: counted, count } of replicas) {
        const workload = others.find(
          ({ metadata, spec }) => metadata.name === counted && spec?.replicas !== undefined,
        );
        expect(workload?.spec.replicas).toBe(count);
      }
    },
  );
});
