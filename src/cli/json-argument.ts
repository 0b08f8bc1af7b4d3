import { readFileSync } from 'node:fs';
import { ConfigError } from '../core/errors.ts';

/** JSON as it was typed, or that of a file: `@FILE`, `@-`. Its user checks that it is an object. */
export function readJsonObject(text: string, flag: string): Readonly<Record<string, unknown>> {
  const isFile = text.startsWith('@');
  const name = text.slice(1);
  try {
    const json = isFile ? readFileSync(name === '-' ? 0 : name, 'utf8') : text;
    return JSON.parse(json) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const value = isFile ? text : '(not shown)';
    const rule = `it must be JSON, or @FILE: ${error instanceof Error ? error.message : String(error)}`;
    throw new ConfigError({ field: flag, value, rule });
  }
}
