import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { type DiagnosticsMessage, open } from '../../src/index.ts';
import { diagnosticsPublisher } from '../../src/telemetry/diagnostics.ts';

function collect(channel: string): DiagnosticsMessage[] {
  const messages: DiagnosticsMessage[] = [];
  const listener = (message: unknown) => messages.push(message as DiagnosticsMessage);
  subscribe(channel, listener);
  onTestFinished(() => void unsubscribe(channel, listener));
  return messages;
}

describe('events on diagnostics channels', () => {
  it('reach a subscriber that has no Holdfast, with the instance and the facts', async () => {
    const acquired = collect('holdfast:lease.acquired');
    const released = collect('holdfast:lease.released');
    const holdfast = await open('memory:', { name: 'ana' });
    await holdfast.withLease('report', async () => {});
    await holdfast.close();
    const instance = expect.stringMatching(/^ana-/);
    expect(acquired).toMatchObject([
      { event: 'lease.acquired', instance, facts: { key: 'report' } },
    ]);
    expect(released).toHaveLength(1);
  });

  it('are built for a subscriber even if nothing else listens, and for nobody otherwise', () => {
    const emitter = new Emitter(diagnosticsPublisher('ana'));
    expect(emitter.hasListener('lease.extended')).toBe(false);
    const messages = collect('holdfast:lease.extended');
    expect(emitter.hasListener('lease.extended')).toBe(true);
    expect(emitter.hasListener('lease.lost')).toBe(false);
    emitter.emit('loop.delayed', { lateMs: 5 });
    expect(messages).toEqual([]);
  });
});
