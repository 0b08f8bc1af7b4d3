// npm run upgrade-test: the harness is TypeScript like the tests it shares its supports with, so the hooks come first.
import { register } from 'node:module';

register('./typescript-hooks.mjs', import.meta.url);
await import('./upgrade-command.ts');
