import type { Host } from './host.ts';

export const systemHost: Host = {
  id: null,
  self: '',
  isAlive: () => true,
  lock: async () => null,
  endGroup: async () => false,
};
