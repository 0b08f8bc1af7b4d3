import { describe, expect, it } from 'vitest';
import { checkConfig, defineConfig } from '../src/config.ts';

describe('a configuration', () => {
  it('is given back as it was', () => {
    const config = defineConfig({
      store: 'sqlite:x.db',
      retention: { sessions: '1h', deadLetters: '30d', history: 60_000 },
      resources: { tuners: 4, gpus: ['a', 'b'], seats: { slots: 3, wait: '5s', key: 'seat' } },
      pipelines: { live: { command: ['ffmpeg', '-i'] }, vod: async () => 7 },
      worker: { name: 'box-1', starts: 8, ttl: '10s', grace: '1s' },
    });
    expect(checkConfig(config)).toBe(config);
    const run = { pipelines: { live: { run: () => {}, resource: null } } };
    expect(checkConfig(run)).toBe(run);
  });

  it.each([
    [{ tuners: 4 }, 'tuners', /there are store/],
    [{ worker: 'box-1' }, 'worker', /it is an object/],
    [{ worker: { slots: 4 } }, 'worker.slots', /there are name, starts, ttl, grace/],
    [{ retention: { letters: '1h' } }, 'retention.letters', /there are sessions, deadLetters/],
    [{ resources: ['a'] }, 'resources', /it is an object/],
    [{ resources: { tuners: '4' } }, 'resources.tuners', /it is how many there are/],
    [{ resources: { tuners: [1, 2] } }, 'resources.tuners', /a list of what each is called/],
    [{ resources: { tuners: { count: 4 } } }, 'resources.tuners.count', /there are slots, wait/],
    [{ pipelines: () => {} }, 'pipelines', /it is an object/],
    [{ pipelines: { poll: () => {} } }, 'pipelines.poll', /there are live, vod/],
    [{ pipelines: { live: 'ffmpeg' } }, 'pipelines.live', /it is an object/],
    [{ pipelines: { live: { command: 'ffmpeg -i' } } }, 'pipelines.live', /\['program'/],
    [{ pipelines: { live: { command: [] } } }, 'pipelines.live', /\['program'/],
    [{ pipelines: { live: {} } }, 'pipelines.live', /one of them/],
    [{ pipelines: { live: { command: ['a'], run: () => {} } } }, 'pipelines.live', /one of them/],
    [{ pipelines: { live: { command: ['a'], shell: true } } }, 'pipelines.live.shell', /no such/],
  ])('is not %j', (config, field, rule) => {
    expect(() => checkConfig(config)).toThrow(expect.objectContaining({ field }));
    expect(() => checkConfig(config)).toThrow(rule);
  });
});
