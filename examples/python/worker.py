"""One of several workers that pay invoices: one at a time, and none without its lease.

Told by the environment: HOLDFAST_URL, HOLDFAST_TOKEN, DATABASE_URL (the database of Holdfast's
store). `--slow` stops for longer than the lease lasts before it commits.
"""
import os
import signal
import sys

import psycopg2

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../clients/python"))
from holdfast_http import Client  # noqa: E402

name = sys.argv[1]
client = Client(os.environ["HOLDFAST_URL"], os.environ["HOLDFAST_TOKEN"])
database = psycopg2.connect(os.environ["DATABASE_URL"])

with client.lease("invoice-run", ttl=3, wait=20) as lease:
    print(f"{name} has the lease, fence {lease.fence}", flush=True)
    try:
        with database, database.cursor() as cursor:
            cursor.execute("INSERT INTO payments (worker) VALUES (%s)", (name,))
            if "--slow" in sys.argv:
                # A host that sleeps: nothing of this process runs, not even its renewals.
                os.kill(os.getpid(), signal.SIGSTOP)
            # From here to the commit, no other worker can be granted the lease.
            cursor.execute(lease.guard_sql)
        print(f"{name} has paid", flush=True)
    except psycopg2.Error as error:
        print(f"{name} could not commit: {error.pgerror.splitlines()[0]}", flush=True)
