#!/bin/sh
# A nightly report: waits for the day's figures, and adds them up. It knows nothing of leases, but may pass its fence on.
set -eu

echo "begins the report, fence $HOLDFAST_FENCE, process $$"
until [ -e "$FIGURES" ]; do sleep 0.1; done
echo "has written $(awk '{ sum += $1 } END { print sum }' "$FIGURES") into the report"
