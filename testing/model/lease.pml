/*
 * The rules of a lease, for spin. docs/concepts/model.md explains them; testing/model/rules.ts has
 * the same rules by the same names, for traces of the real code. `npm run model` sets how much may
 * happen, and makes one mistake after the other: those are the names in capitals not defined here.
 *
 * Time passes in ticks, and each duration is a countdown: so the states are finite, and cover runs
 * of any length. A fence is GONE (the store has no record), OLD, or NEWEST (no higher one was
 * granted). An era is compared with the store's. A request whose client no longer waits for it may
 * be carried out at any later moment: there is room for one such stray request.
 */
#define CLIENTS 3
#define SHORT 1
#define LONG 2
#define BOUND LONG /* no TTL is longer: so long does a quarantine last */
#define WINDOW 1   /* the time in which a successor may claim */
#define DRIFT 1    /* a client's clock ends a lease later than the store's by this, at most */
#define NOBODY 3   /* holds a free key */
#define BARRED 4   /* a revoked lease keeps its key until its holder must have given it up */
#define GONE 0     /* fences */
#define OLD 1
#define NEWEST 2
#define OTHER 0    /* eras: an earlier one than the store's, */
#define THIS 1     /* the store's, */
#define LATER 2    /* or one that the store had before its address led back to an old server */
#define SAME 0     /* what a store that went back has of a key: what it had, */
#define NOTHING 1
#define NO_LEASE 2 /* the record of the fence alone, */
#define EARLIER 3  /* or from here on: client 0, 1 or 2, as an earlier holder */
#define AT(c, k) ((c) * KEYS + (k))
#define TTL(l) (l -> LONG : SHORT)
#define FROM_NOW(l) (TTL(l) + (NO_GUARD_MARGIN -> DRIFT : 0)) /* a margin is as long as the drift */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define OWN(c) ((c) == 2)                      /* the policy of a client: client 2 is long, */
#define HAS_SESSION(c) ((c) >= CLIENTS - SESSIONS)
#define USES(c, l) ((c) == 0 || (l) == OWN(c)) /* and client 0 takes long and short leases */
mtype = { ACQUIRE, CLAIM, RENEW, RELEASE, TRANSFER, REVOKE, KEEPALIVE, DONE, REFUSED,
  tick, ask, grant, refuse, renewed, restored, released, transferred, revoked, kept, believed,
  ended, stray, unanswered, examined, lost, failedOver, failedBack, passed, committed };
#ifndef SAY
#define SAY(what, c, k, x) printf("STEP %d %d %d %d\n", what, c, k, x)
#endif
/* The store, and how long each client's keepalive lasts there. */
byte holder[KEYS] = NOBODY, left[KEYS], record[KEYS], alive[CLIENTS], sinceLoss = BOUND;
bit offered[KEYS], fresh[KEYS], attached[KEYS], isMade[CLIENTS], isTold[CLIENTS * KEYS];
byte losses, failovers, mayFailBack;
/* What clients know: for how long they believe in each lease, and which era they have examined. */
byte believes[CLIENTS * KEYS], fence[CLIENTS * KEYS], knows[CLIENTS] = THIS;
bit isLong[CLIENTS * KEYS], counted[CLIENTS * KEYS];
/* The request of each client, and the stray one. */
#define STRAY CLIENTS
byte kind[CLIENTS + 1], on[CLIENTS + 1], with[CLIENTS + 1], to[CLIENTS + 1], by, gives[CLIENTS + 1];
byte answer[CLIENTS + 1], says[CLIENTS + 1];
bit wants[CLIENTS + 1], inThis[CLIENTS + 1];
byte guarded, guardFence; /* a transaction that has passed the guard; GONE: there is none */
byte i, j;                /* zero between steps */
#define HOLDS(c, k) (believes[AT(c, k)] > 0)
#define MAY_ASK(c) (kind[c] == 0 && (kind[0] > 0) + (kind[1] > 0) + (kind[2] > 0) < CALLS)
#define MAY_TAKE(c, k, l) (MAY_ASK(c) && !HOLDS(c, k) && USES(c, l))
#define IS_LOCKED(k) (guardFence != GONE && guarded == (k))
#define IS_PRESENTED(q, c, k) (offered[k] && holder[k] == c && kind[q] == CLAIM)
/* rule: quarantine. In a new era no key is granted until all leases from before have ended. */
#define MAY_GRANT(c) (knows[c] != THIS || sinceLoss >= \
    (QUARANTINE_BY_OWN_TTL -> TTL(OWN(c)) : BOUND - QUARANTINE_TOO_SHORT))
/* A request that may mint a fence waits for the guarded transaction. */
#define MAY_RUN(q) (GUARD_WITHOUT_ROW_LOCK || !IS_LOCKED(on[q]) || kind[q] == RENEW || \
    kind[q] == RELEASE || kind[q] == KEEPALIVE)
inline forget(q) {
  kind[q] = 0; on[q] = 0; with[q] = 0; to[q] = 0; gives[q] = 0; answer[q] = 0; says[q] = 0;
  wants[q] = 0; inThis[q] = 0
}
inline untell(c) { isTold[AT(c, 0)] = 0; isTold[AT(c, KEYS - 1)] = 0 }
inline free(k) { holder[k] = NOBODY; left[k] = 0; attached[k] = 0 }
/* rule: end. A client gives a lease up. */
inline end(c, k) {
  believes[AT(c, k)] = 0; fence[AT(c, k)] = 0; isLong[AT(c, k)] = 0; counted[AT(c, k)] = 0
}
/* rule: detach. A lease that leaves a keepalive has the later expiry, and the holder is told. */
inline detach(k) {
  if :: attached[k] -> left[k] = MAX(left[k], alive[holder[k]]);
        attached[k] = 0; isTold[AT(holder[k], k)] = !DETACHMENT_NOT_TOLD :: else fi
}
/* rule: fence. Each grant has a higher fence than all before it on this key. */
inline mint(k) {
  for (j : 0 .. CLIENTS) {
    if :: kind[j] != 0 && on[j] == k && with[j] == NEWEST -> with[j] = OLD :: else fi;
    if :: j < CLIENTS && fence[AT(j, k)] == NEWEST -> fence[AT(j, k)] = OLD :: else fi
  }
  guardFence = (IS_LOCKED(k) -> OLD : guardFence);
  record[k] = NEWEST; offered[k] = 0; j = 0
}
/* rule: grant. A key that is free, or the holder's own, and in the era that was examined.
 * rule: claim. In a quarantine: what was handed over in this era, and granted to none since. */
inline acquire(q, c, k) {
  if
  :: (inThis[q] || ERA_NOT_COMPARED) && (holder[k] == NOBODY || holder[k] == c) &&
     (kind[q] == ACQUIRE || offered[k] || CLAIM_BY_NAME) ->
     SAY(grant, c, k, wants[q] + 2 * (kind[q] == CLAIM) + 4 * IS_PRESENTED(q, c, k));
     if :: IS_PRESENTED(q, c, k) -> assert(fresh[k]); offered[k] = 0
        :: else -> mint(k) fi;
     with[q] = NEWEST; fresh[k] = 0; detach(k);
     holder[k] = c; left[k] = MAX(left[k], TTL(wants[q]));
     answer[q] = DONE; inThis[q] = 0
  :: else -> SAY(refuse, c, k, kind[q]); forget(q)
  fi
}
inline renew(q, c, k) {
  if
  /* rule: renew. The holder's lease lasts longer, and never less long. */
  :: holder[k] == c ->
     left[k] = MAX((LATE_RENEWAL_SHORTENS -> 0 : left[k]), TTL(wants[q]));
     answer[q] = DONE;
     /* rule: attach. A renewal attaches a lease to its client's keepalive. */
     if
     :: q != STRAY && HAS_SESSION(c) && wants[q] == OWN(c) && record[k] == with[q] &&
        !isTold[AT(c, k)] && !counted[AT(c, k)] && (alive[c] > 0 || !isMade[c]) ->
        attached[k] = 1; isMade[c] = 1; alive[c] = TTL(OWN(c)); says[q] = 1
     :: else fi;
     SAY(renewed, c, k, wants[q] + 2 * says[q])
  /* rule: restore. A lease that vanished comes back, if no client was granted it since. */
  :: holder[k] == NOBODY && q != STRAY &&
     (record[k] == with[q] || (record[k] == GONE && inThis[q])) ->
     holder[k] = c; left[k] = TTL(wants[q]); record[k] = with[q];
     answer[q] = DONE; SAY(restored, c, k, wants[q])
  :: else -> answer[q] = REFUSED; SAY(refuse, c, k, RENEW)
  fi;
  inThis[q] = 0
}
/* Release, transfer and revocation name the tenure that they end by its fence. */
inline finish(q, c, k) {
  if
  /* rule: release */
  :: kind[q] == RELEASE && ((holder[k] == c && (record[k] == with[q] || record[k] == GONE)) ||
     (RELEASE_UNCHECKED && holder[k] < NOBODY)) -> SAY(released, c, k, 0); detach(k); free(k)
  /* rule: transfer. The successor has a new fence, and a short time to claim the key in. */
  :: kind[q] == TRANSFER && holder[k] == c && record[k] == with[q] ->
     SAY(transferred, c, k, to[q] + 4 * TRANSFER_KEEPS_FENCE); detach(k);
     holder[k] = to[q]; left[k] = WINDOW;
     if :: TRANSFER_KEEPS_FENCE :: else -> mint(k); fresh[k] = 1 fi;
     offered[k] = inThis[q]
  /* rule: revoke. The key is barred for as long as its holder may act. */
  :: kind[q] == REVOKE && holder[k] < NOBODY && record[k] == with[q] ->
     SAY(revoked, holder[k], k, 0); detach(k); mint(k); fresh[k] = 0; holder[k] = BARRED;
     if :: REVOKE_FREES_AT_ONCE -> free(k) :: else fi
  :: else -> SAY(refuse, c, k, kind[q])
  fi;
  forget(q)
}
/* rule: keepalive. One that has lapsed is renewed by no request; its leases live by themselves. */
inline keepAlive(q, c) {
  if
  :: alive[c] > 0 || BURIED_SESSION_RENEWED ->
     says[q] = isTold[AT(c, 0)] + 2 * isTold[AT(c, KEYS - 1)];
     alive[c] = TTL(OWN(c)); answer[q] = DONE; SAY(kept, c, 0, OWN(c))
  :: else -> answer[q] = REFUSED; SAY(refuse, c, 0, KEEPALIVE)
  fi
}
inline carryOut(q, c, k) {
  if :: kind[q] == ACQUIRE || kind[q] == CLAIM -> acquire(q, c, k)
     :: kind[q] == RENEW -> renew(q, c, k)
     :: kind[q] == KEEPALIVE -> keepAlive(q, c)
     :: else -> finish(q, c, k) fi
}
/* rule: believe. A lease counts from when its request was sent, and ends before the store's. */
inline believe(c, k, l) {
  believes[AT(c, k)] = (DEADLINE_FROM_REPLY -> FROM_NOW(l) : MAX(believes[AT(c, k)], gives[c]));
  SAY(believed, c, k, believes[AT(c, k)]);
  for (j : 0 .. CLIENTS - 1) { assert(j == c || !HOLDS(j, k)) }
  j = 0
}
inline hear(c, k) {
  if
  :: (kind[c] == ACQUIRE || kind[c] == CLAIM) && !HOLDS(c, k) ->
     fence[AT(c, k)] = with[c]; isLong[AT(c, k)] = wants[c]; believe(c, k, wants[c])
  :: kind[c] == RENEW && HOLDS(c, k) && answer[c] == DONE ->
     counted[AT(c, k)] = (counted[AT(c, k)] || says[c]); believe(c, k, isLong[AT(c, k)])
  :: kind[c] == RENEW && HOLDS(c, k) && answer[c] == REFUSED -> end(c, k); SAY(ended, c, k, 0)
  :: kind[c] == KEEPALIVE ->
     for (i : 0 .. KEYS - 1) {
      if :: counted[AT(c, i)] && answer[c] == DONE && !(says[c] & (1 << i)) -> believe(c, i, OWN(c))
         :: else -> counted[AT(c, i)] = 0 fi
     }
     i = 0
  :: else
  fi;
  forget(c)
}
inline pass() {
  for (i : 0 .. CLIENTS - 1) {
    alive[i] = MAX(alive[i], 1) - 1;
    if :: gives[i] == 1 -> forget(i) :: gives[i] > 1 -> gives[i]-- :: else fi;
    for (j : 0 .. KEYS - 1) {
      if :: HOLDS(i, j) -> believes[AT(i, j)]-- :: else fi;
      if :: !HOLDS(i, j) -> end(i, j) :: else fi
    }
  }
  for (i : 0 .. KEYS - 1) {
    left[i] = MAX(left[i], 1) - 1;
    if :: holder[i] != NOBODY && left[i] == 0 && !(attached[i] && alive[holder[i]]) -> free(i)
       :: else fi
  }
  for (i : 0 .. CLIENTS - 1) { if :: alive[i] == 0 -> untell(i) :: else fi }
  sinceLoss = (sinceLoss < BOUND -> sinceLoss + 1 : BOUND); i = 0; j = 0; SAY(tick, 0, 0, 0)
}
inline turnBack(k, state) {
  if
  :: state == SAME
  :: state == NO_LEASE -> free(k)
  :: else -> free(k); record[k] = GONE; fresh[k] = 0;
     if :: state >= EARLIER -> holder[k] = state - EARLIER; left[k] = LONG; record[k] = OLD
        :: else fi
  fi
}
/* rule: loss. A store that may have forgotten grants begins an era, and every keepalive is over. */
inline beginEra(isOtherServer) {
  sinceLoss = 0; guarded = 0; guardFence = GONE;
  for (i : 0 .. CLIENTS) {
    /* What lies unread at one server is not carried out by another. */
    if :: isOtherServer && answer[i] == 0 -> forget(i) :: else -> inThis[i] = 0 fi;
    if :: i < CLIENTS -> knows[i] = OTHER :: else fi;
    if :: i < CLIENTS && !SESSION_SURVIVES_LOSS -> alive[i] = 0; untell(i) :: else fi
  }
  for (i : 0 .. KEYS - 1) {
    offered[i] = 0;
    if :: SESSION_SURVIVES_LOSS :: else -> attached[i] = 0 fi;
    if :: holder[i] != NOBODY && left[i] == 0 && !attached[i] -> free(i) :: else fi
  }
  i = 0
}
inline send(c, what, k, l) {
  kind[c] = what; on[c] = k; with[c] = fence[AT(c, k)]; inThis[c] = (knows[c] == THIS);
  wants[c] = l; SAY(ask, c, k, what)
}
#define TAKES(c, k, l) :: d_step { MAY_TAKE(c, k, l) && MAY_GRANT(c) -> \
    send(c, ACQUIRE, k, l); gives[c] = FROM_NOW(l) } \
  :: d_step { MAY_TAKE(c, k, l) && (offered[k] || CLAIM_BY_NAME) -> \
    send(c, CLAIM, k, l); gives[c] = FROM_NOW(l) }
#define RENEWS(c, k) :: d_step { MAY_ASK(c) && HOLDS(c, k) -> \
    send(c, RENEW, k, isLong[AT(c, k)]); gives[c] = FROM_NOW(wants[c]) }
#define KEEPS(c) :: d_step { MAY_ASK(c) && (counted[AT(c, 0)] || counted[AT(c, KEYS - 1)]) -> \
    send(c, KEEPALIVE, 0, 0); gives[c] = FROM_NOW(OWN(c)) }
#define RELEASES(c, k) :: d_step { MAY_ASK(c) && HOLDS(c, k) -> send(c, RELEASE, k, 0); \
    if :: WORKS_WHILE_IT_RELEASES :: else -> end(c, k) fi; skip }
#define TRANSFERS(c, k, d) :: d_step { HANDOVERS && c != d && MAY_ASK(c) && HOLDS(c, k) -> \
    send(c, TRANSFER, k, 0); to[c] = d; end(c, k) }
/* An operator reads a fence, and what that revokes may be carried out at any later moment. */
#define REVOKES(k) :: d_step { HANDOVERS && kind[STRAY] == 0 && holder[k] < NOBODY -> \
    kind[STRAY] = REVOKE; on[STRAY] = k; with[STRAY] = record[k]; SAY(ask, 3, k, REVOKE) }
#define IS_CARRIED_OUT(c) \
  :: d_step { kind[c] != 0 && answer[c] == 0 && MAY_RUN(c) -> carryOut(c, c, on[c]); skip }
#define HEARS(c) :: d_step { answer[c] != 0 -> hear(c, on[c]) } \
  :: d_step { kind[c] != 0 -> SAY(unanswered, c, on[c], kind[c]); forget(c) }
#define GOES_ASTRAY(c) :: d_step { STRAYS && kind[c] != 0 && answer[c] == 0 && kind[STRAY] == 0 -> \
    SAY(stray, c, on[c], kind[c]); kind[STRAY] = kind[c]; on[STRAY] = on[c]; by = c; \
    with[STRAY] = (kind[c] == RENEW -> 0 : with[c]); to[STRAY] = to[c]; wants[STRAY] = wants[c]; \
    inThis[STRAY] = (kind[c] != RENEW && inThis[c]); forget(c) }
/* rule: led-back. An era that the client has left is a loss, too. */
#define EXAMINES(c) :: d_step { knows[c] != THIS && kind[c] == 0 -> \
    if :: knows[c] == LATER && !FAILBACK_UNNOTICED -> beginEra(0) :: else fi; \
    knows[c] = THIS; SAY(examined, c, 0, 0) }
/* rule: guard. A transaction passes with the newest fence, and locks the row of the lease. */
#define GUARDS(c, k) :: d_step { GUARDING && guardFence == GONE && HOLDS(c, k) && \
    fence[AT(c, k)] == NEWEST && record[k] == NEWEST -> \
    guarded = k; guardFence = NEWEST; SAY(passed, c, k, 0) }
#define FAILS_OVER(a, b) :: d_step { failovers < FAILOVERS && (KEYS == 2 || b == SAME) -> \
    failovers++; mayFailBack = 1; SAY(failedOver, 0, a, b); \
    turnBack(0, a); turnBack(KEYS - 1, b); beginEra(1) }
/* Only once every client has been at the new server: it can tell then that it is led back. */
#define FAILS_BACK(a, b) :: d_step { mayFailBack && (KEYS == 2 || b == SAME) && \
    knows[0] == THIS && knows[1] == THIS && knows[2] == THIS -> \
    SAY(failedBack, 0, a, b); turnBack(0, a); turnBack(KEYS - 1, b); beginEra(1); mayFailBack = 0; \
    sinceLoss = BOUND; knows[0] = LATER; knows[1] = LATER; knows[2] = LATER }
#define EACH_CLIENT(A) A(0) A(1) A(2)
#define ON(A, k) A(0, k) A(1, k) A(2, k)
#define ON_WITH(A, k, x) A(0, k, x) A(1, k, x) A(2, k, x)
#if KEYS == 2
#define EACH(A) ON(A, 0) ON(A, 1)
#define EACH_WITH(A, x) ON_WITH(A, 0, x) ON_WITH(A, 1, x)
#else
#define EACH(A) ON(A, 0)
#define EACH_WITH(A, x) ON_WITH(A, 0, x)
#endif
#define OLDER(A, b) A(SAME, b) A(NOTHING, b) A(NO_LEASE, b) A(3, b) A(4, b) A(5, b)
#define EACH_OLDER(A) OLDER(A, 0) OLDER(A, 1) OLDER(A, 2) OLDER(A, 3) OLDER(A, 4) OLDER(A, 5)
active proctype world() {
  do
  :: d_step { true -> pass() }
  EACH_WITH(TAKES, 0) EACH_WITH(TAKES, 1) EACH(RENEWS) EACH_CLIENT(KEEPS) EACH(RELEASES)
  EACH_WITH(TRANSFERS, 0) EACH_WITH(TRANSFERS, 1) EACH_WITH(TRANSFERS, 2)
  REVOKES(0) REVOKES(KEYS - 1)
  EACH_CLIENT(IS_CARRIED_OUT) EACH_CLIENT(HEARS) EACH_CLIENT(GOES_ASTRAY) EACH_CLIENT(EXAMINES)
  :: d_step { kind[STRAY] != 0 && MAY_RUN(STRAY) ->
       carryOut(STRAY, by, on[STRAY]); forget(STRAY); by = 0 }
  EACH(GUARDS) EACH_OLDER(FAILS_OVER) EACH_OLDER(FAILS_BACK)
  :: d_step { guardFence != GONE -> SAY(committed, 0, guarded, 0);
       assert(guardFence == NEWEST); guarded = 0; guardFence = GONE } /* rule: commit */
  :: d_step { losses < LOSSES -> losses++; SAY(lost, 0, 0, 0);
       turnBack(0, NOTHING); turnBack(KEYS - 1, NOTHING); beginEra(0) }
  od
}
