#!/usr/bin/env bash
# Unpacks the OCI image and runs it as its user on a read-only root, as other users, with and without a first user.
source "$(dirname "$0")/overlay.sh"

python3 "$(dirname "$0")/unpack_image.py" "$work"/one/*.oci.tar "$work/image"
entrypoint=(/usr/bin/bunko serve --config /etc/bunko/bunko.conf)
[[ $(python3 -c 'import json,sys; c=json.load(open(sys.argv[1]))["config"]; print(c["User"], *c["Entrypoint"])' "$work/image.json") == "999:999 ${entrypoint[*]}" ]] ||
  fail "user or entry point of the image"
# Runtimes make this directory, and /dev/null in it.
mkdir -p "$work/image/dev"
mount --bind "$work/image" "$work/image" && mount -o remount,bind,ro "$work/image"
mount --bind /dev "$work/image/dev"
mount -t proc none "$work/image/proc"
mount -t tmpfs -o mode=0700,uid=999,gid=999 none "$work/image/data/db"

# as USER [NAME=VALUE...] -- [FLAG...]: the image's command, as a runtime starts it.
as() {
  local user=$1 variables=()
  shift
  while [[ $1 != -- ]]; do variables+=("$1"); shift; done
  shift
  exec env -i PATH=/usr/sbin:/usr/bin "${variables[@]}" chroot --userspec="$user:$user" "$work/image" "${entrypoint[@]}" --port 27917 "$@"
}
refused() { # STATUS WORDS ARGUMENTS...
  local status=0 expected=$1 words=$2
  shift 2
  (as "$@") >"$work/log" 2>&1 || status=$?
  [[ $status == "$expected" ]] || { cat "$work/log" >&2; fail "status $status instead of $expected: $*"; }
  grep -q -F -- "$words" "$work/log" || { cat "$work/log" >&2; fail "'$words' is not said: $*"; }
}

refused 1 '/data/db belongs to user 999, and this process runs as user 1234' 1234 --
refused 1 'Read-only file system' 999 -- --dbpath /srv
refused 2 "unexpected argument '--no-such-flag'" 999 -- --no-such-flag
refused 2 'MONGO_INITDB_ROOT_USERNAME and MONGO_INITDB_ROOT_PASSWORD go together' 999 MONGO_INITDB_ROOT_USERNAME=root --
mount -t tmpfs none "$work/image/docker-entrypoint-initdb.d"
scripts=$work/image/docker-entrypoint-initdb.d
touch "$scripts/made.sh"
refused 2 '/docker-entrypoint-initdb.d/made.sh cannot be run: there is no sh here' 999 --
[[ -z $(ls -A "$work/image/data/db") ]] || fail "a refused start left files"
rm "$scripts/made.sh"
echo 'db.made.insertOne({_id: 1, by: process.env.MONGO_INITDB_DATABASE})' >"$scripts/made.js"

began=$(date +%s%N)
serve as 999 MONGO_INITDB_DATABASE=init --
"$work/tarball/bin/bunko" shell --quiet mongodb://127.0.0.1:27917/init --eval 'quit(db.made.findOne().by === "init" ? 0 : 1)' ||
  fail "the script in docker-entrypoint-initdb.d did not run"
umount "$scripts"
# The health checks of compose files call the programs of MongoDB's image.
for shell in mongosh mongo; do
  said=$(chroot --userspec=999:999 "$work/image" "/usr/bin/$shell" --quiet --port 27917 --eval "db.adminCommand('ping')")
  [[ $said == "{ ok: 1 }" ]] || fail "the image's $shell says $said"
done
insert
echo "from the image to the first insert: $((($(date +%s%N) - began) / 1000000)) ms"
stop
serve as 999 -- --replSet rs0 --replSetHost 127.0.0.1:27917
assert_kept
stop
mount -t tmpfs -o mode=0700,uid=1234,gid=1234 none "$work/image/data/db"
serve as 1234 MONGO_INITDB_ROOT_USERNAME=root MONGO_INITDB_ROOT_PASSWORD=secret MONGO_INITDB_DATABASE=shop --
insert 2>/dev/null && fail "a first user did not turn access control on"
"$work/tarball/bin/bunko" restore --quiet --uri 'mongodb://root:secret@127.0.0.1:27917/?authSource=admin' --dir "$work/dump"
stop
