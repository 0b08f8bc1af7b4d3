"""A program with a lease over HTTP, told what to do on stdin: a JSON string per line."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../clients/python"))
from holdfast_http import Client, HoldfastError, LeaseLost  # noqa: E402

urls, token, key = sys.argv[1].split(","), sys.argv[2], sys.argv[3]
lease = None


def say(**facts):
    print(json.dumps(facts), flush=True)


def now():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


say(event="ready")
for line in sys.stdin:
    do, *told = json.loads(line).split()
    if do == "acquire":
        try:
            lease = Client(urls, token).lease(key, ttl=float(told[0]), wait=float(told[1]))
            lease.acquire()
            say(event="acquired", fence=lease.fence, isHeld=lease.is_held(), at=now())
        except (HoldfastError, OSError, LeaseLost) as error:
            say(event="failed", code=getattr(error, "code", None), why=str(error))
    elif do == "ask":
        say(event="answer", isHeld=lease.is_held(), at=now())
    elif do == "watch":
        # Asks without a pause until the lease is over, as a thread that works does.
        say(event="watching")
        last = 0
        while lease.is_held():
            last = now()
            time.sleep(0.002)
        say(event="over", lastHeldAt=last)
    elif do == "block":
        # Nothing of this thread runs for a while.
        time.sleep(float(told[0]))
        say(event="answer", isHeld=lease.is_held(), at=now())
    elif do == "release":
        say(event="released", released=lease.release())
