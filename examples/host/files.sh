#!/bin/sh
# Runs on the host: a sandbox that lives for several commands, with files going in and out.
# Try: sh examples/host/files.sh
set -eu

box=$(glovebox create --ttl 5m --label example=files)
trap 'glovebox rm --quiet "$box"' EXIT
here=$(mktemp -d)

printf 'name,n\npear,3\napple,5\n' >"$here/in.csv"
glovebox cp "$here/in.csv" "$box:data/"
glovebox exec "$box" -- sh -c 'tail -n +2 data/in.csv | sort >data/out.csv'
glovebox cp "$box:data/out.csv" "$here/"

echo "sorted in the sandbox:"
cat "$here/out.csv"
rm -r "$here"
