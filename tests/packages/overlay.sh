# For scripts in a namespace of their own: a copy of this machine's root, and a server in it.
set -euo pipefail
work=$1 root=$2
fail() { echo "FAILED packages: $1" >&2; exit 1; }
has() { command -v "$1" >/dev/null || { echo "left out: $2 (there is no $1 on this machine)"; return 1; }; }

source "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

mount -t tmpfs none "$work/overlay"
upper=$work/overlay/upper machine=$work/overlay/machine
mkdir "$upper" "$work/overlay/work" "$machine"
mount -t overlay -o "lowerdir=/,upperdir=$upper,workdir=$work/overlay/work" none "$machine"
mount -t proc none "$machine/proc"
mount --rbind /dev "$machine/dev"
mount -t tmpfs none "$machine/run"
mount -t tmpfs none "$machine/tmp"
inside() { chroot "$machine" "$@"; }

# serve COMMAND...: starts a server and waits until it answers at port 27917.
serve() {
  "$@" >"$work/log" 2>&1 &
  server=$!
  local tries
  for tries in {1..100}; do
    "$work/tarball/bin/bunko" ping mongodb://127.0.0.1:27917 2>/dev/null && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$work/log" >&2
  fail "the server does not answer after $tries tries"
}
stop() { kill -TERM "$server"; wait "$server" || fail "the server ended with status $?"; }

# A document {_id: 1} in mongodump's format.
insert() {
  mkdir -p "$work/dump/shop"
  printf '\x0e\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00' >"$work/dump/shop/books.bson"
  "$work/tarball/bin/bunko" restore --quiet --port 27917 --dir "$work/dump"
}
assert_kept() {
  rm -rf "$work/read"
  "$work/tarball/bin/bunko" dump --quiet --port 27917 --db shop --collection books --out "$work/read"
  cmp "$work/dump/shop/books.bson" "$work/read/shop/books.bson" || fail "the document is gone"
}
# The machine's own server may have the usual port.
other_port() { sed -i 's/port: 27017/port: 27917/' "$machine/etc/bunko/bunko.conf"; }
as_bunko() { serve chroot "$machine" setpriv --reuid=bunko --regid=bunko --init-groups /usr/bin/bunko serve --config /etc/bunko/bunko.conf; }

# assert_nothing_left PATTERN...: each file that differs from the machine's, and each directory of that name, matches one of
# the patterns.
assert_nothing_left() {
  local left
  left=$(cd "$upper" && find . \( ! -type d -o -name '*bunko*' \) | grep -v -E "^\./($(IFS='|'; echo "$*"))" || true)
  [[ -z $left ]] || fail "these files are left: $left"
}
