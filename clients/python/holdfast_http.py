"""Leases of a Holdfast server over HTTP. One file, no dependencies, Python 3.8 or later.

    with Client("http://127.0.0.1:4747", token).lease("camera-3", ttl=30, wait=10) as lease:
        while lease.is_held():
            step(fence=lease.fence)

The holder is this process, not the server. A lease counts its own deadline, from when the last
request that the server confirmed was SENT, and ends here before it ends in the store. So
`is_held()` is right without a network call, even if every server hangs. It cannot stop a write
that is already on its way: pass `lease.fence` to what you write to, and refuse older fences there.
"""
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

WAIT_SLICE_S = 10.0
RETRY_S = 0.2
TRY_ANOTHER = ("NOT_READY", "STORE_UNAVAILABLE", "OUTCOME_UNKNOWN")


class HoldfastError(Exception):
    """A problem that the server reported: `code`, `status` and all its members in `problem`."""

    def __init__(self, status, problem, retry_after=None):
        self.status, self.problem, self.retry_after = status, problem, retry_after
        self.code = problem.get("code", "UNKNOWN")
        super().__init__(f"{self.code} ({status}): {problem.get('detail', 'no detail')}")


class LeaseHeld(HoldfastError):
    """Another holder has the lease: see `problem["holder"]` and `problem["expiresInMs"]`."""


class LeaseLost(Exception):
    """The lease is over. Stop the work under it."""


class Client:
    """One Holdfast fleet: the addresses of its API processes. Any of them serves any request."""

    def __init__(self, urls, token=None):
        self.urls = [urls] if isinstance(urls, str) else list(urls)
        if not self.urls:
            raise ValueError("urls is empty: pass the address of at least one API process")
        self.token = token

    def lease(self, key, ttl=30.0, wait=0.0, holder=None):
        """A lease for `with`: acquired on entry, renewed in a thread, released on exit."""
        return Lease(self, key, float(ttl), float(wait), holder or f"py-{uuid.uuid4()}")

    def post(self, path, body, timeout):
        """Sends to the first server that answers. Raises OSError if none does."""
        failure = None
        for _ in self.urls:
            try:
                return self._post_to(self.urls[0], path, body, timeout)
            except (OSError, ValueError, HoldfastError) as error:
                if isinstance(error, HoldfastError) and error.code not in TRY_ANOTHER:
                    raise
                failure = error
            self.urls.append(self.urls.pop(0))
        raise OSError(f"no server answered: {failure}")

    def _post_to(self, url, path, body, timeout):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(url.rstrip("/") + path, data, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            problem, retry = json.loads(error.read() or b"{}"), error.headers.get("Retry-After")
            kind = LeaseHeld if problem.get("code") == "LEASE_HELD" else HoldfastError
            raise kind(error.code, problem, float(retry) if retry else None) from None


class Lease:
    """`fence` proves the lease, `guard_sql` ties a PostgreSQL transaction to it, `lost` is an Event."""

    def __init__(self, client, key, ttl, wait, holder):
        if ttl < 1:
            raise ValueError(f"ttl is {ttl}: it has to be at least 1 second")
        guard = min(max(ttl / 20, 0.1), 1.5)
        self.key, self.ttl, self.wait, self.holder, self.fence = key, ttl, wait, holder, None
        self.lost = threading.Event()
        self._client, self._path = client, "/api/v3/leases/" + urllib.parse.quote(key, safe="")
        self._valid, self._tolerance = ttl - guard, min(1.0, guard / 2)
        self._timeout = min(5.0, ttl / 6)
        self._sent = None  # when the last confirmed request was sent: (monotonic, wall)
        self._done, self._thread = threading.Event(), None

    def acquire(self):
        """Raises LeaseHeld after `wait` seconds, HoldfastError if the server refuses."""
        until = time.monotonic() + self.wait
        while True:
            left = max(0.0, until - time.monotonic())
            wait = min(left, WAIT_SLICE_S)
            body = {"holder": self.holder, "ttl": _ms(self.ttl), "wait": _ms(wait)}
            sent = _now()
            try:
                grant = self._client.post(self._path, body, min(5.0, self.ttl / 2) + wait)
                break
            except (HoldfastError, OSError) as error:
                code = getattr(error, "code", None)
                if left == 0 or code not in (None, "LEASE_HELD", "STORE_QUARANTINED"):
                    raise
                is_long = code == "STORE_QUARANTINED" and error.retry_after
                time.sleep(min(left, error.retry_after if is_long else RETRY_S))
        self.fence, self._sent, self.guard_sql = int(grant["fence"]), sent, grant.get("guardSql")
        self.lost, self._done = threading.Event(), threading.Event()
        # A request that waited was sent long before the grant: only a renewal is worth its time.
        if time.monotonic() - sent[0] > self.ttl / 3 and not self._renew(is_first=True):
            raise LeaseLost(f"lease '{self.key}' ended before it could be used")
        self._thread = threading.Thread(target=self._keep, name=f"lease {self.key}", daemon=True)
        self._thread.start()
        return self

    def remaining(self):
        """How many seconds the lease is good for without another renewal; 0 if it is over."""
        if self._sent is None or self.lost.is_set() or self._done.is_set():
            return 0.0
        elapsed, ahead = self._elapsed()
        # A clock that was set back may hide a sleep: the lease waits for a renewal.
        return 0.0 if ahead < -self._tolerance else max(0.0, self._valid - elapsed)

    def is_held(self):
        return self.remaining() > 0

    def assert_held(self):
        """Call it before each step that matters."""
        if not self.is_held():
            raise LeaseLost(f"lease '{self.key}' (fence {self.fence}) is over: stop the work")

    def release(self):
        """Ends the lease here at once, then in the store. An unreachable store lets it expire."""
        self._end()
        try:
            return self._client.post(self._path + "/release", self._own(), self._timeout)["released"]
        except (OSError, HoldfastError):
            return False

    def transfer(self, successor):
        """Keeps the key for `successor`, which acquires it under that name within two seconds."""
        self._end()
        self._client.post(self._path + "/transfer", dict(self._own(), successor=successor), 5.0)

    __enter__ = acquire

    def __exit__(self, *_):
        self.release()

    def _end(self):
        self._done.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(self._timeout)

    def _own(self):
        return {"holder": self.holder, "fence": str(self.fence)}

    def _keep(self):
        pause = self.ttl / 3
        while not self.lost.is_set() and not self._done.wait(pause):
            pause = self.ttl / 3 if self._renew() else RETRY_S

    def _renew(self, is_first=False):
        sent = _now()
        body = dict(self._own(), ttl=_ms(self.ttl))
        try:
            self._client.post(self._path + "/renew", body, self._timeout)
        except (HoldfastError, OSError) as error:
            if getattr(error, "code", None) == "LEASE_NOT_HELD" or self._elapsed()[0] >= self._valid:
                self.lost.set()
            return False
        # An answer that comes after the deadline revives nothing: the work has been told to stop.
        if not is_first and self._elapsed()[0] >= self._valid:
            self.lost.set()
            return False
        self._sent = sent
        return True

    def _elapsed(self):
        """Seconds since the last confirmed request was sent, and how far the clocks disagree."""
        monotonic, wall = _now()
        elapsed = monotonic - self._sent[0]
        ahead = wall - self._sent[1] - elapsed
        # The monotonic clock stops while the host sleeps; the lease in the store does not.
        return elapsed + (ahead if ahead > self._tolerance else 0.0), ahead


def _now():
    return time.monotonic(), time.time()


def _ms(seconds):
    return int(seconds * 1000)
