/**
 * The module that opens a Holdfast for an application, and closes it with the application.
 *
 * Order of a shutdown: elections stop before the server of the application does, so that another
 * instance leads while requests still end here; the Holdfast is closed when no request runs.
 */
import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Logger,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, MetadataScanner } from '@nestjs/core';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { Holdfast, type OpenOptions, open } from '../holdfast.ts';
import type { Election } from '../lease/election.ts';
import { runUnder } from './current-lease.ts';
import { type LeaderMark, leaderMarkOf } from './decorators.ts';

export interface HoldfastModuleOptions extends OpenOptions {
  /** As the first argument of `open`. Default: the embedded store. */
  store?: Parameters<typeof open>[0];
  /** How long `close` waits for work to end when the application stops. Default 2 s. */
  closeWithin?: Duration | undefined;
}

export interface HoldfastModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>,
    Pick<FactoryProvider<HoldfastModuleOptions>, 'inject' | 'useFactory'> {}

const OPTIONS = Symbol('holdfast options');
const DEFAULT_CLOSE = '2s';

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** One for each application. Every class of the application can have `Holdfast` injected. */
export class HoldfastModule
  implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #holdfast: Holdfast;
  readonly #discovery: DiscoveryService;
  readonly #scanner: MetadataScanner;
  readonly #closeWithin: Duration;
  readonly #elections = new Map<string, Election>();
  readonly #logger = new Logger('Holdfast');

  constructor(
    holdfast: Holdfast,
    discovery: DiscoveryService,
    scanner: MetadataScanner,
    { closeWithin = DEFAULT_CLOSE }: HoldfastModuleOptions,
  ) {
    this.#holdfast = holdfast;
    this.#discovery = discovery;
    this.#scanner = scanner;
    this.#closeWithin = closeWithin;
  }

  static forRoot(options: HoldfastModuleOptions = {}): DynamicModule {
    checkOptions(options);
    return moduleOf({ provide: OPTIONS, useValue: options }, []);
  }

  static forRootAsync(options: HoldfastModuleAsyncOptions): DynamicModule {
    const { useFactory, inject = [], imports = [] } = options;
    if (typeof useFactory !== 'function') {
      const rule = 'it has to be a function that returns the options of forRoot';
      throw new ConfigError({ field: 'useFactory', value: useFactory, rule });
    }
    return moduleOf({ provide: OPTIONS, useFactory, inject }, imports);
  }

  onApplicationBootstrap(): void {
    this.#holdfast.on('leader.failed', ({ election, error }) =>
      this.#logger.error(
        `leading '${election}' failed`,
        error instanceof Error ? error.stack : error,
      ),
    );
    const wrappers = [...this.#discovery.getControllers(), ...this.#discovery.getProviders()];
    const instances = new Set<unknown>();
    for (const wrapper of wrappers) {
      // One instance may be provided under two names.
      if (instances.has(wrapper.instance)) continue;
      instances.add(wrapper.instance);
      this.#startElections(wrapper);
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    const within = { within: this.#closeWithin };
    await Promise.all([...this.#elections.values()].map((election) => election.stop(within)));
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#holdfast.close({ within: this.#closeWithin });
  }

  #startElections(wrapper: InstanceWrapper): void {
    const instance: unknown = wrapper.instance;
    if (typeof instance !== 'object' || instance === null) return;
    const prototype: object | null = Object.getPrototypeOf(instance);
    if (prototype === null) return;
    for (const name of this.#scanner.getAllMethodNames(prototype)) {
      const method: unknown = Reflect.get(instance, name);
      if (typeof method !== 'function') continue;
      const mark = leaderMarkOf(method);
      if (mark === undefined) continue;
      this.#checkLeader(mark, wrapper);
      const { election, options } = mark;
      const elected = this.#holdfast.elect(election, {
        ...options,
        onElected: (context) => runUnder(context, () => Reflect.apply(method, instance, [])),
      });
      this.#elections.set(election, elected);
    }
  }

  #checkLeader({ election }: LeaderMark, wrapper: InstanceWrapper): void {
    if (!wrapper.isDependencyTreeStatic()) {
      const rule = `${wrapper.name} must not be request-scoped: it leads without a request`;
      throw new ConfigError({ field: '@Leader', value: election, rule });
    }
    if (!this.#elections.has(election)) return;
    const rule =
      'two methods have this election, and one would wait for the other: give each its own';
    throw new ConfigError({ field: '@Leader', value: election, rule });
  }
}

Module({})(HoldfastModule);
// As the constructor's parameters would be decorated.
const INJECTED = [Holdfast, DiscoveryService, MetadataScanner, OPTIONS];
for (const [i, token] of INJECTED.entries()) Inject(token)(HoldfastModule, undefined, i);

function moduleOf(
  options: Provider<HoldfastModuleOptions>,
  imports: NonNullable<DynamicModule['imports']>,
): DynamicModule {
  const opened: FactoryProvider<Holdfast> = {
    provide: Holdfast,
    inject: [OPTIONS],
    useFactory: (given: HoldfastModuleOptions) => {
      checkOptions(given);
      const { store, closeWithin: _, ...others } = given;
      return open(store, others);
    },
  };
  return {
    module: HoldfastModule,
    global: true,
    imports: [...imports, DiscoveryModule],
    providers: [options, opened],
    exports: [Holdfast],
  };
}

/** What is known before the store is opened; `open` checks the rest. */
function checkOptions(options: HoldfastModuleOptions): void {
  if (typeof options !== 'object' || options === null) {
    const rule = "an object, such as { store: 'redis://localhost' }";
    throw new ConfigError({ field: 'the options of HoldfastModule', value: options, rule });
  }
  durationMs(options.closeWithin ?? DEFAULT_CLOSE, 'closeWithin');
}
