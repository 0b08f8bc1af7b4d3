/** A run coordinator for node-cron 4.4 or later: each fire of a task runs on one instance. */
export { type RunCoordinator, runCoordinator } from './run-coordinator.ts';
