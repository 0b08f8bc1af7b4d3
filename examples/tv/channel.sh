#!/bin/sh
# What a worker runs for a session, with the session in its environment: ffmpeg makes HLS of a test picture and a tone, in a
# folder of the session's own. Started again for the same session, it goes on with the same list.
set -eu

# What a client names is never part of a command: it chooses among what there is.
case "$HOLDFAST_SESSION_TARGET" in
  one) picture=testsrc tone=330 ;;
  two) picture=testsrc2 tone=440 ;;
  three) picture=smptebars tone=550 ;;
  *) echo "there is no channel '$HOLDFAST_SESSION_TARGET'" >&2; exit 1 ;;
esac

mkdir -p "$TV_FOLDER/hls/$HOLDFAST_SESSION_ID"
cd "$TV_FOLDER/hls/$HOLDFAST_SESSION_ID"
exec ffmpeg -nostdin -hide_banner -loglevel warning \
  -re -f lavfi -i "$picture=size=320x180:rate=10" -re -f lavfi -i "sine=frequency=$tone" \
  -c:v libx264 -preset ultrafast -tune zerolatency -g 5 -c:a aac -b:a 48k \
  -f hls -hls_time 0.5 -hls_list_size 0 -hls_flags append_list+omit_endlist+temp_file \
  -hls_segment_filename 'part-%04d.ts' index.m3u8
