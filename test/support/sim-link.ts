import type { Dialer, Link, MessageListener } from '../../src/store/redis/client/link.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import type { SimRedis } from '../../testing/sim-redis/server.ts';

/** Leads to a simulated server over a network without faults or delay. */
export function simDialer(server: SimRedis, name = 'redis://simulated'): Dialer {
  return { name, dial: async () => simLink(server) };
}

function simLink(server: SimRedis): Link {
  const listeners = new Map<string, MessageListener>();
  const client = server.connect((reply) => {
    const [, channel, message] = reply as [string, string, string];
    queueMicrotask(() => listeners.get(channel)?.(message, channel));
  });
  const send = async (args: readonly string[]): Promise<Reply> => {
    const reply = server.execute(client, args);
    if (reply instanceof ReplyError) throw reply;
    return reply;
  };
  return {
    send,
    subscribe: async (channel, listener) => {
      listeners.set(channel, listener);
      await send(['SUBSCRIBE', channel]);
    },
    unsubscribe: async (channel) => {
      listeners.delete(channel);
      await send(['UNSUBSCRIBE', channel]);
    },
    destroy: () => server.disconnect(client),
  };
}
