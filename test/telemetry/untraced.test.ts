import { afterEach, expect, it, vi } from 'vitest';
import { untraced } from '../../src/core/tracing.ts';
import { open } from '../../src/holdfast.ts';
import { findTracing } from '../../src/telemetry/open-telemetry.ts';

const loads = vi.hoisted(() => ({ count: 0 }));
vi.mock('@opentelemetry/api', () => {
  loads.count++;
  throw new Error('it is not installed');
});

const GLOBAL = Symbol.for('opentelemetry.js.api.1');

afterEach(() => {
  vi.restoreAllMocks();
  Reflect.deleteProperty(globalThis, GLOBAL);
});

it('where no SDK was set up, nothing of OpenTelemetry is loaded', async () => {
  await using holdfast = await open('memory:');
  expect(await holdfast.withLease('a', () => 7)).toBe(7);
  expect(await findTracing()).toBe(untraced);
  expect(loads.count).toBe(0);
});

it('where one was set up, but the API is not to be had from here, nothing is traced, nothing breaks, and it is said once', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
  Reflect.set(globalThis, GLOBAL, { version: '1.9.0', trace: {} });
  await using holdfast = await open('memory:');
  expect(await holdfast.withLease('a', () => 7)).toBe(7);
  expect(await findTracing()).toBe(untraced);
  expect(loads.count).toBeGreaterThan(0);
  // Once, though it was opened and asked for again.
  expect(warn.mock.calls).toEqual([[expect.stringContaining('npm install'), 'HoldfastWarning']]);
});

it('where nobody traces, work is called and nothing else', async () => {
  expect(untraced.origin()).toBeNull();
  const seen = new AbortController();
  const signal = vi.spyOn(seen, 'signal', 'get');
  const result = untraced.run({ name: 'x', attributes: {} }, (span) => {
    span.set({ a: 1 });
    span.fail('no');
    span.watch(seen);
    return 7;
  });
  expect(result).toBe(7);
  expect(signal).not.toHaveBeenCalled();
});
