#!/bin/bash
# The same as pipeline.mjs, small: it starts in a fiftieth of the time, for tests that run hundreds of them.
#
#   pipeline.sh RECORD SHORTEST_MS LONGEST_MS
#
# It lasts for some time between the two, and ends with 0; on SIGTERM at once.
record=$1
lasts=$(( $2 + RANDOM % ($3 - $2 + 1) ))
facts="\"pid\":$$,\"leader\":$$,\"session\":\"$HOLDFAST_SESSION_ID\",\"channel\":\"$HOLDFAST_SESSION_TARGET\""
facts+=",\"slot\":\"$HOLDFAST_SLOT\",\"fence\":$HOLDFAST_FENCE"

# One write, at the end of the file. EPOCHREALTIME has six decimals, and a decimal sign that depends on the language.
mark() {
  us=${EPOCHREALTIME//[.,]/}
  printf '{"atMs":%s.%s,"what":"%s",%s}\n' "${us:0:-3}" "${us: -3}" "$1" "$facts" >>"$record"
}

trap 'mark SIGTERM; mark end; exit 0' TERM
mark begin
begun=$us
# Reading from what never says anything takes a while without another process.
exec 9<> <(:)
while (( us - begun < lasts * 1000 )); do
  read -rt 0.01 -u 9
  mark beat
done
mark end
