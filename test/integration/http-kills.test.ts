import { afterAll, describe, expect, it } from 'vitest';
import { startApi } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { allSessions, redisGrounds, sqliteGrounds, takeStarts } from './support/intent-ground.ts';

leaveNothingBehind();

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const POINTS = [
  ['before the step', 'nothing was written, and it is started', false],
  ['after the step', 'all was written, and it is found', true],
] as const;

describe.each(GROUNDS)('kill -9 of the interface over $name', (kind) => {
  it.each(POINTS)(
    'I-13 %s of the store: the connection is cut; whoever asks again at another process gets 202: %s',
    async (dies, _, isReplay) => {
      await using ground = await kind.make();
      await using dying = await startApi({ ...ground.at, dies });
      await using other = await startApi(ground.at);
      await expect(dying.start('the channel')).rejects.toThrow('fetch failed');
      expect(await dying.child.exit()).toEqual({ code: null, signal: 'SIGKILL' });
      const written = await allSessions(ground.store);
      expect(written).toHaveLength(isReplay ? 1 : 0);
      const { status, body } = await other.start('the channel');
      expect({ status, replayed: body.replayed }).toEqual({ status: 202, replayed: isReplay });
      if (isReplay) expect(body.sessionId).toBe(written[0]?.id);
      expect(await takeStarts(ground.store)).toEqual([body.sessionId]);
      expect(await allSessions(ground.store)).toMatchObject([{ id: body.sessionId, clients: 1 }]);
    },
  );
});
