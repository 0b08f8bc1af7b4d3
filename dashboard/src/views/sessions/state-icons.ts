import type { SessionState } from '../../../../src/client/messages.ts';
import type { IconName } from '../../parts/icon.tsx';

export const STATE_ICONS: Readonly<Record<SessionState, IconName>> = {
  NEW: 'ring',
  STARTING: 'waiting',
  RUNNING: 'dot',
  STOPPING: 'half',
  ENDED: 'square',
};
