import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import type { Strictness } from '../store/port/workflow-store.ts';
import type { HandlerContext } from './attempt.ts';
import { StepFailedError } from './errors.ts';
import type { RetryLimits } from './retry-policy.ts';
import type { ActionDefinitions, PayloadOut, ResultIn } from './schema.ts';

/** A `reducer` holds state: it takes the actions of a workflow only in order, without gaps. */
export type ProcessorRole = 'compute' | 'effect' | 'reducer';

export interface ProcessorOptions<A extends ActionDefinitions = ActionDefinitions> {
  /** The target of actions. All processes that run a processor of this name share its actions. */
  name: string;
  role: ProcessorRole;
  /** The action types, with their schemas; default any. */
  actions?: A;
  /** The handlers, by action type. The return value is the action's result. */
  handlers: {
    readonly [K in keyof A & string]?: (
      payload: PayloadOut<A[K]>,
      context: HandlerContext,
    ) => ResultIn<A[K]> | Promise<ResultIn<A[K]>>;
  };
  /** How many actions run at once, each of another workflow; default 16. */
  concurrency?: number;
  /**
   * How long an action is kept for this process without an extension; default 30 s. Then another
   * gets it.
   */
  claim?: Duration;
  /** How long a handler may take; default 60 s. The `timeout` of `emit` overrides it. */
  timeout?: Duration;
  /** How often an action is tried before it becomes a dead letter; default 5. */
  tries?: number;
  /**
   * The pause before the second try; it doubles with each further try, up to a minute. Default 200
   * ms.
   */
  backoff?: Duration;
}

export interface ProcessorSettings {
  readonly name: string;
  readonly strictness: Strictness;
  readonly actions: ActionDefinitions;
  readonly concurrency: number;
  readonly claimMs: number;
  readonly timeoutMs: number;
  /** For actions that were emitted without a policy of their own. */
  readonly retry: RetryLimits;
  handle(type: string, payload: unknown, context: HandlerContext): unknown;
}

const KNOWN = new Set([
  'name',
  'role',
  'actions',
  'handlers',
  'concurrency',
  'claim',
  'timeout',
  'tries',
  'backoff',
]);
const ROLES: readonly string[] = ['compute', 'effect', 'reducer'] satisfies ProcessorRole[];
const MIN_CLAIM_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;

export function readProcessorOptions<A extends ActionDefinitions>(
  options: ProcessorOptions<A>,
): ProcessorSettings {
  checkKnown(options, KNOWN);
  const { name, role, handlers, concurrency = 16, tries = 5 } = options;
  checkTargetId(name, 'name');
  check('role', role, ROLES.includes(role), `it must be one of ${ROLES.join(', ')}`);
  check(
    'concurrency',
    concurrency,
    isCount(concurrency, 10_000),
    'it must be a whole number from 1 to 10,000',
  );
  check('tries', tries, isCount(tries, 1_000), 'it must be a whole number from 1 to 1,000');
  const all = Object.entries((handlers ?? {}) as Record<string, unknown>);
  const areFunctions = all.length > 0 && all.every(([, handler]) => typeof handler === 'function');
  check(
    'handlers',
    handlers,
    areFunctions,
    'it has a function for at least one action type, and nothing but functions',
  );
  const claimMs = durationMs(options.claim ?? '30s', 'claim');
  check('claim', options.claim, claimMs >= MIN_CLAIM_MS, 'it must be at least 1 second');
  const firstMs = durationMs(options.backoff ?? 200, 'backoff');
  const byType = new Map(all as [string, (payload: unknown, context: HandlerContext) => unknown][]);
  return {
    name,
    strictness: role === 'reducer' ? 'strict' : 'monotonic',
    actions: options.actions ?? {},
    concurrency,
    claimMs,
    retry: { tries, minMs: firstMs, maxMs: MAX_BACKOFF_MS },
    timeoutMs: durationMs(options.timeout ?? '60s', 'timeout'),
    handle: (type, payload, context) => {
      const handler = byType.get(type);
      if (handler !== undefined) return handler(payload, context);
      throw new StepFailedError(
        `processor '${name}' has no handler for action type '${type}'. Add one to its handlers, or emit to another target.`,
      );
    },
  };
}

function isCount(value: unknown, max: number): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max;
}

function check(field: string, value: unknown, isGood: boolean, rule: string): void {
  if (!isGood) throw new ConfigError({ field, value, rule });
}
