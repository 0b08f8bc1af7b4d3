/** What examples/deploy says, as Kubernetes would read it; and one of its containers as a process of this host. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../../support/redis-server.ts';
import { BIN, privateFolder, type Running, startCli, startProgram } from './cli.ts';

const FOLDER = fileURLToPath(new URL('../../../examples/deploy/', import.meta.url));

export function readDeploy(path: string): string {
  return readFileSync(`${FOLDER}${path}`, 'utf8');
}

type Labels = Readonly<Record<string, string>>;

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold: number;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: { readonly name: string; readonly key: string };
    readonly fieldRef?: { readonly fieldPath: string };
  };
}

export interface Container {
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly Variable[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: string[] } } };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: object;
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly shareProcessNamespace?: boolean;
  readonly securityContext: { readonly runAsUser: number; readonly fsGroup: number };
  readonly containers: readonly [Container];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string; readonly defaultMode: number };
    readonly configMap?: { readonly name: string };
  }[];
}

/** The fields that any of the manifests here has. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas?: number;
    readonly serviceName?: string;
    readonly clusterIP?: string;
    readonly maxUnavailable?: number;
    readonly ports?: readonly { readonly targetPort: string }[];
    readonly selector: Labels & { readonly matchLabels?: Labels };
    readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec };
  };
}

function manifestsIn(...files: readonly string[]): Manifest[] {
  return files.flatMap((file) =>
    parseAllDocuments(readDeploy(`kubernetes/base/${file}`), { strict: true }).map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as Manifest;
    }),
  );
}

export const ALL = manifestsIn('settings.yaml', 'api.yaml', 'worker.yaml');

export function manifest(kind: string, name: string): Manifest {
  const found = ALL.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** What the secret has instead of what is to be replaced. */
export interface Replaced {
  readonly store?: string;
  readonly 'tokens.json'?: string;
}

/** The container of a workload, started on this host: its command, arguments and environment, with its files in a private folder, on a port that is free. */
export class Pod {
  readonly spec: PodSpec;
  readonly container: Container;
  readonly #name: string;
  readonly #root = privateFolder();
  #port = 0;

  constructor(workload: Manifest, replaced: Replaced, number = 0) {
    this.spec = workload.spec.template.spec;
    this.container = this.spec.containers[0];
    this.#name = `${workload.metadata.name}-${number}`;
    const secret = { ...manifest('Secret', 'holdfast').stringData, ...replaced };
    for (const { name, mountPath } of this.container.volumeMounts)
      this.#mount(name, mountPath, secret);
    this.#env = Object.fromEntries(
      this.container.env.map((variable) => [variable.name, this.#valueOf(variable, secret)]),
    );
  }

  readonly #env: Record<string, string>;

  async start(): Promise<Running> {
    const { command, args, ports } = this.container;
    const [declared] = ports;
    this.#port = await freePort();
    const words = [...command.slice(1), ...args].map((word) =>
      word === String(declared?.containerPort)
        ? String(this.#port)
        : word.replace(/^\$\((\w+)\)$/, (_, name: string) => this.#env[name] ?? ''),
    );
    return startCli(words, { cwd: this.#root, env: { ...this.#env, HOLDFAST_QUARANTINE: 'off' } });
  }

  /** What the kubelet runs in the container before it sends SIGTERM. */
  preStop(): Running {
    const [program = '', ...words] = this.container.lifecycle?.preStop.exec.command ?? [];
    const bin = join(this.#root, 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, 'holdfast'), `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`);
    chmodSync(join(bin, 'holdfast'), 0o755);
    const env = { ...this.#env, PATH: `${bin}:${process.env.PATH}` };
    return startProgram(program, words, { cwd: this.#root, env });
  }

  /** As the kubelet asks: what is answered in time with 200 to 399 is a success. Null where there is no answer. */
  async ask({
    httpGet,
    timeoutSeconds = 1,
  }: Probe): Promise<{ status: number; text: string } | null> {
    const signal = AbortSignal.timeout(timeoutSeconds * 1_000);
    const url = `http://127.0.0.1:${this.#port}${httpGet.path}`;
    try {
      const response = await fetch(url, { signal, headers: { Connection: 'close' } });
      return { status: response.status, text: await response.text() };
    } catch {
      return null;
    }
  }

  async passes(probe: Probe): Promise<boolean> {
    const status = (await this.ask(probe))?.status ?? 0;
    return status >= 200 && status < 400;
  }

  /** Writes what a volume has, where the root of the container is this pod's folder. */
  #mount(name: string, mountPath: string, secret: Readonly<Record<string, string>>): void {
    const volume = this.spec.volumes.find((each) => each.name === name);
    if (volume === undefined) throw new Error(`there is no volume ${name}`);
    const folder = join(this.#root, mountPath);
    mkdirSync(folder, { recursive: true });
    const { configMap } = volume;
    const files = configMap === undefined ? secret : manifest('ConfigMap', configMap.name).data;
    if (configMap === undefined && volume.secret === undefined) return;
    for (const [file, text] of Object.entries(files ?? {}))
      writeFileSync(join(folder, file), text, { mode: volume.secret?.defaultMode ?? 0o644 });
  }

  #valueOf({ value, valueFrom }: Variable, secret: Readonly<Record<string, string>>): string {
    if (valueFrom?.fieldRef?.fieldPath === 'metadata.name') return this.#name;
    if (valueFrom?.secretKeyRef !== undefined) return secret[valueFrom.secretKeyRef.key] ?? '';
    return value?.startsWith('/') === true ? join(this.#root, value) : (value ?? '');
  }
}
