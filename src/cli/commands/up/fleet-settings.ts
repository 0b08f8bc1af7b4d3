import type { HoldfastConfig } from '../../../config.ts';
import { ConfigError } from '../../../core/errors.ts';
import type { FleetService } from '../../../fleet/fleet-service.ts';
import type { Holdfast } from '../../../holdfast.ts';

/** The options of pollers in a configuration. */
const FOR_POLLER = [
  'weight',
  'every',
  'ttl',
  'timeout',
  'concurrency',
  'maxBackoff',
  'results',
  'discovery',
  'http',
  'poll',
];
/** Those that a runner has, too. */
const FOR_RUNNER = ['weight', 'ttl', 'results', 'discovery'];

/** Makes what the instance does with its targets: it polls them, or runs a task for each. */
export function fleetServiceOf(holdfast: Holdfast, settings: HoldfastConfig): FleetService {
  const { runner } = settings;
  if (runner === undefined) return holdfast.poller(pollerOptions(settings));
  if (settings.poll !== undefined) {
    const rule = 'an instance polls targets or runs them. Leave out poll or runner';
    throw new ConfigError({ field: 'runner', value: 'poll and runner', rule });
  }
  try {
    return holdfast.runner({ ...chosen(settings, FOR_RUNNER), ...runner });
  } catch (error) {
    if (!(error instanceof ConfigError) || !Object.hasOwn(runner, error.field.split('.')[0] ?? ''))
      throw error;
    const { field, value, rule } = error;
    throw new ConfigError({ field: `runner.${field}`, value, rule });
  }
}

function pollerOptions(settings: HoldfastConfig): object {
  const { store, http = {} } = settings;
  const isEmbedded = store === undefined || store.startsWith('sqlite:');
  return {
    ...chosen(settings, FOR_POLLER),
    // The embedded store is on this host, whose users can reach its ports anyway.
    http: { ...(isEmbedded && { allow: ['loopback'] }), ...http },
  };
}

function chosen(settings: HoldfastConfig, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => names.includes(name)));
}
