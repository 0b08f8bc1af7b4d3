#!/usr/bin/env bash
# A program with a lease over HTTP, told what to do on stdin: a JSON string per line.
export HOLDFAST_URL=$1 HOLDFAST_TOKEN=$2
key=$3
# shellcheck source=/dev/null
source "$(dirname "${BASH_SOURCE[0]}")/../../clients/bash/holdfast-http.sh"

# Seconds since boot: one clock for all processes of the host.
now() { local up; read -r up _ </proc/uptime; printf '%s' "$up"; }
held() { if holdfast_held; then printf true; else printf false; fi; }
answer() { printf '{"event":"answer","isHeld":%s,"at":%s}\n' "$(held)" "$(now)"; }

trap 'holdfast_release' EXIT
printf '{"event":"ready"}\n'
while read -r line; do
  line=${line#\"}
  read -r -a told <<<"${line%\"}"
  case ${told[0]} in
    acquire)
      if holdfast_acquire "$key" "${told[1]}" "${told[2]}"; then
        printf '{"event":"acquired","fence":%s,"isHeld":%s,"at":%s}\n' "$HOLDFAST_FENCE" "$(held)" "$(now)"
      else
        printf '{"event":"failed","code":"%s"}\n' "$HOLDFAST_ERROR"
      fi
      ;;
    ask) answer ;;
    watch)
      printf '{"event":"watching"}\n'
      last=0
      while holdfast_held; do last=$(now); sleep 0.005; done
      printf '{"event":"over","lastHeldAt":%s}\n' "$last"
      ;;
    block)
      sleep "${told[1]}"
      answer
      ;;
    release)
      if holdfast_release; then printf '{"event":"released","released":true}\n'
      else printf '{"event":"released","released":false}\n'; fi
      ;;
  esac
done
