#!/usr/bin/env bash
# Runs the OCI image with umoci and runc: on a read-only root, with its health check, ended by SIGTERM.
set -euo pipefail
work=$1
fail() { echo "FAILED packages: $1" >&2; exit 1; }
for tool in umoci runc; do
  command -v "$tool" >/dev/null || { echo "left out: a container (there is no $tool on this machine)"; exit 0; }
done

mkdir "$work/layout" && tar -xf "$work"/one/*.oci.tar -C "$work/layout"
umoci unpack --image "$work/layout:$("$work/tarball/bin/bunko" --version | cut -d ' ' -f 2)" "$work/bundle" 2>"$work/log" || { cat "$work/log" >&2; fail "umoci unpack"; }
python3 - "$work/bundle/config.json" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))
config["process"]["terminal"] = False
config["root"]["readonly"] = True
config["mounts"].append({"destination": "/data/db", "type": "tmpfs", "source": "tmpfs", "options": ["mode=0700", "uid=999", "gid=999"]})
json.dump(config, open(sys.argv[1], "w"))
END
# A network of its own: the usual port is free there.
name=bunko-packages-$$
trap 'runc --root "$work/runc" delete --force "$name" 2>/dev/null || true' EXIT
runc --root "$work/runc" run --bundle "$work/bundle" "$name" >"$work/log" 2>&1 &
container=$!
in_container() { runc --root "$work/runc" exec "$name" /usr/bin/bunko "$@"; }
for _ in {1..100}; do
  in_container ping 2>/dev/null && break
  kill -0 "$container" 2>/dev/null || break
  sleep 0.1
done
in_container ping || { cat "$work/log" >&2; fail "the health check in a container"; }
runc --root "$work/runc" kill "$name" TERM
wait "$container" || fail "the container ended with status $?"
echo "in a container of runc: started, healthy, ended by SIGTERM"
