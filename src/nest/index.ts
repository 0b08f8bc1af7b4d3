/** Holdfast in a Nest application: docs/guides/nest.md. Needs `@nestjs/common` and `core`. */
export { currentLease } from './current-lease.ts';
export {
  type AsyncMethod,
  Leader,
  type LeaderOptions,
  type MethodGuard,
  OncePer,
  WithLease,
} from './decorators.ts';
export {
  HoldfastModule,
  type HoldfastModuleAsyncOptions,
  type HoldfastModuleOptions,
} from './module.ts';
