#!/bin/sh
# Runs on the host: a web server inside a sandbox, reached through the gateway. The sandbox has no
# network of its own. Needs curl, and GLOVEBOX_API_KEY as `glovebox up` printed it.
# Try: sh examples/host/server.sh
set -eu

url=${GLOVEBOX_HTTP:-http://127.0.0.1:7070}
box=$(glovebox create --ttl 5m --label example=server)
trap 'glovebox rm --quiet "$box"' EXIT

echo 'Hello through the gateway' | glovebox cp - "$box:index.html"
glovebox exec -d "$box" -- python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null

# By path; PORT-ID.localhost as host name works as well.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  curl --silent --fail --header "Authorization: Bearer $GLOVEBOX_API_KEY" \
    "$url/sandboxes/$box/proxy/8000/index.html" && break
  sleep 0.2
done
