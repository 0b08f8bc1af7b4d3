#!/usr/bin/env bash
# Leases of a Holdfast server over HTTP, with bash 5 and curl. One file, to run or to source.
#
#   HOLDFAST_URL=http://127.0.0.1:4747 HOLDFAST_TOKEN=… holdfast-http.sh run camera-3 -- ./work.sh
#
# The holder is this process, not the server. A lease counts its own deadline, from when the last
# request that the server confirmed was SENT, and ends here before it ends in the store. A write
# that is on its way cannot be stopped: pass $HOLDFAST_FENCE on, and refuse older fences there.
#
# To source: holdfast_acquire KEY [TTL_S [WAIT_S]], holdfast_held, holdfast_release. They return 0
# for yes, 75 if another holder has the key or the store grants nothing now, 1 for an error.
# HOLDFAST_URL may list several addresses, with commas: any of them serves any request.
HOLDFAST_WAIT_SLICE_MS=10000

# Milliseconds since boot, the host's sleep included, and of the wall clock.
_holdfast_now() {
  local up
  read -r up _ </proc/uptime
  printf '%d %d' "$((10#${up/./}0))" "$((${EPOCHREALTIME/[.,]/} / 1000))"
}

# PATH BODY TIMEOUT_MS: sends to the first server that answers. Sets _holdfast_status (000: none
# answered) and _holdfast_reply. The token goes through stdin: arguments are readable by all users.
_holdfast_post() {
  local url out
  local -a urls
  IFS=, read -r -a urls <<<"${HOLDFAST_URL:?set HOLDFAST_URL to the address of an API process}"
  for url in "${urls[@]}"; do
    out=$(curl -sS -K - --max-time "$(_holdfast_seconds "$3")" -H 'Content-Type: application/json' \
      --data "$2" -w '\n%{http_code}' "${url%/}/api/v3/leases/$1" 2>/dev/null \
      <<<"header = \"Authorization: Bearer ${HOLDFAST_TOKEN-}\"")
    _holdfast_status=${out##*$'\n'} _holdfast_reply=${out%$'\n'*}
    [[ $_holdfast_status == 503 && $(_holdfast_field code) != STORE_QUARANTINED ]] && continue
    [[ $_holdfast_status =~ ^[245] ]] && return 0
  done
  _holdfast_status=000
  return 1
}

_holdfast_seconds() { printf '%d.%03d' "$(($1 / 1000))" "$(($1 % 1000))"; }

# A text or number of the last reply. Replies are flat JSON objects.
_holdfast_field() { sed -nE "s/.*\"$1\":\"?([^\",}]*).*/\1/p" <<<"$_holdfast_reply"; }

_holdfast_path() {
  local LC_ALL=C i char out=
  for ((i = 0; i < ${#1}; i++)); do
    char=${1:i:1}
    [[ $char == [A-Za-z0-9._~-] ]] || printf -v char '%%%02X' "'$char"
    out+=$char
  done
  printf '%s' "$out"
}

# Says what went wrong with a request for the lease, and how it counts.
_holdfast_refusal() {
  local code detail
  code=$(_holdfast_field code) detail=$(sed -nE 's/.*"detail":"([^"]*).*/\1/p' <<<"$_holdfast_reply")
  [[ $_holdfast_status == 000 ]] && code=NO_ANSWER detail="no server of $HOLDFAST_URL answered"
  HOLDFAST_ERROR=$code
  printf 'holdfast: could not acquire %s: %s (%s)\n' "$1" "$detail" "$code" >&2
  [[ $code == LEASE_HELD || $code == STORE_QUARANTINED ]] && return 75
  return 1
}

holdfast_acquire() {
  local key=$1 ttl=$((${2:-30} * 1000)) wait=$((${3:-0} * 1000)) slice now until guard
  ((ttl >= 1000)) || { printf 'holdfast: a TTL of %s ms is shorter than 1 s\n' "$ttl" >&2; return 1; }
  guard=$((ttl / 20 < 100 ? 100 : ttl / 20 > 1500 ? 1500 : ttl / 20))
  # A command needs time to end before the key can be granted again: `run` sets it.
  HOLDFAST_VALID_MS=$((ttl - guard - ${HOLDFAST_STOP_MS:-0}))
  HOLDFAST_TOLERANCE_MS=$((guard / 2)) HOLDFAST_CALL_MS=$((ttl / 6 > 5000 ? 5000 : ttl / 6))
  HOLDFAST_TTL_MS=$ttl HOLDFAST_KEY=$(_holdfast_path "$key")
  HOLDFAST_HOLDER="sh-$(</proc/sys/kernel/random/uuid)"
  read -r until _ < <(_holdfast_now)
  until=$((until + wait))
  while true; do
    now=$(_holdfast_now)
    slice=$((until - ${now% *})) slice=$((slice < 0 ? 0 : slice))
    wait=$((slice > HOLDFAST_WAIT_SLICE_MS ? HOLDFAST_WAIT_SLICE_MS : slice))
    _holdfast_post "$HOLDFAST_KEY" "{\"holder\":\"$HOLDFAST_HOLDER\",\"ttl\":$ttl,\"wait\":$wait}" \
      "$((wait + (ttl / 2 > 5000 ? 5000 : ttl / 2)))"
    [[ $_holdfast_status == 200 ]] && break
    [[ $_holdfast_status == 4* && $(_holdfast_field code) != LEASE_HELD ]] && slice=0
    ((slice > 0)) || { _holdfast_refusal "$key"; return; }
    sleep 0.2
  done
  HOLDFAST_FENCE=$(_holdfast_field fence)
  export HOLDFAST_FENCE
  HOLDFAST_STATE=$(mktemp -d) || return 1
  printf '%s' "$now" >"$HOLDFAST_STATE/sent"
  # A request that waited was sent long before the grant: only a renewal is worth its time.
  _holdfast_renew first || { holdfast_release; return 1; }
  _holdfast_keep $$ </dev/null >/dev/null 2>&1 &
  HOLDFAST_KEEPER=$!
}

_holdfast_own() { printf '{"holder":"%s","fence":"%s"%s}' "$HOLDFAST_HOLDER" "$HOLDFAST_FENCE" "${1-}"; }

# Renews until the lease is over, or the shell that holds it is.
_holdfast_keep() {
  local pause=$((HOLDFAST_TTL_MS / 3))
  while [[ ! -e $HOLDFAST_STATE/lost ]]; do
    sleep "$(_holdfast_seconds "$pause")"
    kill -0 "$1" 2>/dev/null || return
    if _holdfast_renew; then pause=$((HOLDFAST_TTL_MS / 3)); else pause=200; fi
  done
}

_holdfast_renew() {
  local now
  now=$(_holdfast_now)
  _holdfast_post "$HOLDFAST_KEY/renew" "$(_holdfast_own ",\"ttl\":$HOLDFAST_TTL_MS")" "$HOLDFAST_CALL_MS"
  [[ $(_holdfast_field code) == LEASE_NOT_HELD ]] && : >"$HOLDFAST_STATE/lost"
  # An answer that comes after the deadline revives nothing: the work has been told to stop.
  (($(_holdfast_elapsed) < HOLDFAST_VALID_MS)) || [[ ${1-} == first ]] || : >"$HOLDFAST_STATE/lost"
  [[ $_holdfast_status == 200 && ! -e $HOLDFAST_STATE/lost ]] || return 1
  printf '%s' "$now" >"$HOLDFAST_STATE/sent.new" && mv "$HOLDFAST_STATE/sent.new" "$HOLDFAST_STATE/sent"
}

# Milliseconds since the last confirmed request was sent; by the wall clock if that ran ahead.
_holdfast_elapsed() {
  local up wall sent sent_wall
  read -r up wall < <(_holdfast_now)
  read -r sent sent_wall <"$HOLDFAST_STATE/sent"
  local elapsed=$((up - sent)) ahead=$((wall - sent_wall - (up - sent)))
  # A clock that was set back may hide a sleep: the lease waits for a renewal.
  ((ahead < -HOLDFAST_TOLERANCE_MS)) && elapsed=$HOLDFAST_VALID_MS
  ((ahead > HOLDFAST_TOLERANCE_MS)) && elapsed=$((elapsed + ahead))
  printf '%d' "$elapsed"
}

# May the next step begin? Asks no server. Call it before each step that matters.
holdfast_held() {
  [[ -n ${HOLDFAST_STATE-} && -e $HOLDFAST_STATE/sent && ! -e $HOLDFAST_STATE/lost ]] || return 1
  (($(_holdfast_elapsed) < HOLDFAST_VALID_MS))
}

# Ends the lease here at once, then in the store. An unreachable store lets it expire.
holdfast_release() {
  [[ -n ${HOLDFAST_STATE-} ]] || return 1
  kill "${HOLDFAST_KEEPER-}" 2>/dev/null && wait "$HOLDFAST_KEEPER" 2>/dev/null
  rm -rf "$HOLDFAST_STATE"
  HOLDFAST_STATE=
  _holdfast_post "$HOLDFAST_KEY/release" "$(_holdfast_own)" "$HOLDFAST_CALL_MS"
  [[ $(_holdfast_field released) == true ]]
}

# run KEY [--ttl S] [--wait S] [--stop S] -- COMMAND…: the command runs while the lease is held.
_holdfast_run() {
  local key=${1-} ttl=30 wait=0 stop=5 child status usage
  usage='usage: holdfast-http.sh run KEY [--ttl SECONDS] [--wait SECONDS] [--stop SECONDS] -- COMMAND…'
  [[ $key == --help || $key == -h ]] && { printf '%s\n' "$usage"; return 0; }
  shift
  while [[ ${1-} == --?* ]]; do
    case $1 in
      --ttl) ttl=${2-} ;; --wait) wait=${2-} ;; --stop) stop=${2-} ;;
      *) printf 'holdfast: unknown option %s\n%s\n' "$1" "$usage" >&2; return 64 ;;
    esac
    [[ ${2-} =~ ^[0-9]+$ ]] || { printf 'holdfast: %s is "%s": give whole seconds\n' "$1" "${2-}" >&2; return 64; }
    shift 2
  done
  [[ ${1-} == -- && -n ${2-} ]] || { printf '%s\n' "$usage" >&2; return 64; }
  ((stop * 3 < ttl)) || { printf 'holdfast: --stop %s is over a third of --ttl %s\n' "$stop" "$ttl" >&2; return 64; }
  HOLDFAST_STOP_MS=$((stop * 1000)) && holdfast_acquire "$key" "$ttl" "$wait" || return
  setsid -- "${@:2}" &
  child=$!
  trap 'kill -TERM -- -$child 2>/dev/null' TERM INT HUP
  while kill -0 "$child" 2>/dev/null; do
    holdfast_held || { _holdfast_stop "$child" "$stop"; break; }
    sleep 0.1
  done
  wait "$child"; status=$?
  holdfast_held || { printf 'holdfast: lost lease %s, so its command was stopped\n' "$key" >&2; status=76; }
  holdfast_release
  return "$status"
}

_holdfast_stop() {
  local i
  kill -TERM -- "-$1" 2>/dev/null
  for ((i = 0; i < $2 * 10; i++)); do kill -0 -- "-$1" 2>/dev/null || return; sleep 0.1; done
  kill -KILL -- "-$1" 2>/dev/null
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  [[ ${1-} == run ]] || { _holdfast_run --help; exit $(($# > 0 ? 64 : 0)); }
  _holdfast_run "${@:2}"
fi
