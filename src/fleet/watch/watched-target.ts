import { type Explanation, reasonFor } from '../plan/explain.ts';
import { FleetTarget } from '../view/fleet-target.ts';
import type { FleetMember } from '../view/member.ts';
import { type PicturedTarget, SAME_MS, type TargetReason } from './fleet-picture.ts';

type Published = Omit<PicturedTarget, 'id' | 'expiresInMs'> & { expiresAtMs: number };

/** A target of a fleet that is watched: as it is known, and as watchers were last shown it. */
export class WatchedTarget extends FleetTarget {
  isPaused = false;
  /** Its owner should have renewed its lease by now. */
  isLate = false;
  preferred: string | null = null;
  #published: Published | null = null;

  /**
   * From now on `picture` shows the target as it is. Returns whether that is a change. `member` is
   * its owner, if that is a member; `isRenewalNews`: a renewal alone counts as a change.
   */
  publish(member: FleetMember | undefined, isRenewalNews: boolean): boolean {
    const { owner, planned, preferred, pinned, expiresAtMs } = this;
    const reason = this.#reason(member);
    const published = this.#published;
    const isSame =
      published !== null &&
      published.owner === owner &&
      published.planned === planned &&
      published.preferred === preferred &&
      published.pinned === pinned &&
      published.reason === reason;
    if (!isSame) {
      this.#published = { owner, planned, preferred, pinned, reason, expiresAtMs };
      return true;
    }
    const isRenewed = Math.abs(expiresAtMs - published.expiresAtMs) > SAME_MS;
    published.expiresAtMs = expiresAtMs;
    return isRenewed && isRenewalNews;
  }

  /** As it was published; null where it was not yet. `nowMs` is the moment of the picture. */
  picture(nowMs: number): PicturedTarget | null {
    if (this.#published === null) return null;
    const { owner, planned, preferred, pinned, reason, expiresAtMs } = this.#published;
    const expiresInMs = expiresAtMs === 0 ? null : Math.max(0, expiresAtMs - nowMs);
    return { id: this.id, owner, planned, preferred, pinned, reason, expiresInMs };
  }

  #reason(member: FleetMember | undefined): TargetReason {
    if (this.isPaused) return 'paused';
    const reason: Explanation['reason'] = reasonFor(this, member);
    return this.isLate && (reason === 'kept' || reason === 'moving') ? 'late' : reason;
  }
}
