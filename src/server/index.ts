export { type AppOptions, createApp, type HoldfastApp } from './app.ts';
export type { FailedRequest } from './exchange.ts';
export type { LanSettings } from './lan-guard.ts';
export type { LimitSettings, RateSettings } from './limits.ts';
export type { Scope } from './route.ts';
export { type Servable, type ServeOptions, type Serving, serve } from './serve.ts';
export { type FoundTokens, readTokens } from './token-sources.ts';
export type { TokenSettings } from './tokens.ts';
