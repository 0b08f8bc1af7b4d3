/** Who claimed a workflow, by the id of the lease: people know an instance by its name, and no lease by its UUID. */
import { computed, type ReadonlySignal } from '@preact/signals';
import { events, eventVersion } from './events.ts';

/** From the claims among the events that the dashboard has; older leases are not known. */
const claimants: ReadonlySignal<ReadonlyMap<string, string>> = computed(() => {
  eventVersion.value;
  const known = new Map<string, string>();
  for (const { event, leaseId, instance } of events)
    if (event === 'workflow.claimed' && typeof leaseId === 'string') known.set(leaseId, instance);
  return known;
});

/** The instance that claimed a workflow with this lease; undefined if the log does not say. */
export function claimantOf(leaseId: unknown): string | undefined {
  return typeof leaseId === 'string' ? claimants.value.get(leaseId) : undefined;
}
