#!/usr/bin/env bash
# Installs the .deb, runs it, upgrades it with data and a changed configuration, and purges it.
source "$(dirname "$0")/overlay.sh"

cp "$work"/one/bunko_*.deb "$machine/tmp/bunko.deb"
cp "$work/newer.deb" "$machine/tmp/newer.deb"
began=$(date +%s%N)
inside dpkg -i /tmp/bunko.deb
other_port
as_bunko
insert
echo "from the package to the first insert: $((($(date +%s%N) - began) / 1000000)) ms"
[[ $(inside stat -c '%U %G %a' /var/lib/bunko) == 'bunko bunko 700' ]] || fail "owner or mode of /var/lib/bunko"
assert_programs /usr/lib/bunko/bin inside
assert_monitoring "$machine/usr/share/bunko/monitoring"
inside /usr/lib/bunko/bin/mongodump --quiet --port 27917 --archive >"$work/archive"
inside /usr/lib/bunko/bin/mongorestore --quiet --port 27917 --drop --archive <"$work/archive"
assert_kept

echo "-- beside MongoDB's own packages"
mkdir -p "$work/theirs/DEBIAN" "$work/theirs/usr/bin"
printf 'Package: mongodb-example\nVersion: 1\nArchitecture: all\nMaintainer: example\nDescription: example\n' >"$work/theirs/DEBIAN/control"
for name in mongod mongosh mongodump; do printf '#!/bin/sh\necho theirs\n' >"$work/theirs/usr/bin/$name"; done
chmod 755 "$work"/theirs/usr/bin/*
dpkg-deb --root-owner-group --build "$work/theirs" "$machine/tmp/theirs.deb" >/dev/null
inside dpkg -i /tmp/theirs.deb
[[ $(inside mongosh) == theirs ]] || fail "the other package's mongosh"
assert_programs /usr/lib/bunko/bin inside
inside dpkg --purge mongodb-example

inside dpkg --verify bunko | grep -v ' c /etc/bunko/bunko.conf$' && fail "files differ from the package's sums"

if has logrotate "the rotation of the log"; then
  inside logrotate --force /etc/logrotate.d/bunko
  for _ in {1..100}; do [[ -s $machine/var/log/bunko/bunko.log ]] && break; sleep 0.1; done
  grep -q 'Bunko starting' "$machine/var/log/bunko/bunko.log" || fail "no new log after a rotation"
fi
if has systemd-analyze "the check of the units"; then
  said=$(inside systemd-analyze verify /usr/lib/systemd/system/bunko.service /usr/lib/systemd/system/bunko.socket 2>&1) ||
    fail "systemd-analyze verify: $said"
  [[ $said != *bunko* ]] || fail "systemd-analyze verify: $said"
  # Of 100; a unit without any restriction has 96.
  inside systemd-analyze security --offline=yes --threshold=20 --no-pager bunko.service | tail -n 1
fi
for shell in bash zsh fish; do
  if has "$shell" "the completions for $shell"; then
    case $shell in
      bash) file=/usr/share/bash-completion/completions/bunko ;;
      zsh) file=/usr/share/zsh/vendor-completions/_bunko ;;
      fish) file=/usr/share/fish/vendor_completions.d/bunko.fish ;;
    esac
    inside "$shell" -n "$file"
  fi
done
if has man "the manual pages"; then
  MANROFFSEQ='' MANWIDTH=120 inside man -E UTF-8 -l --warnings /usr/share/man/man1/bunko-serve.1.gz >"$work/page" 2>"$work/warnings"
  grep -q -- '--bind-ip' "$work/page" || fail "no --bind-ip in bunko-serve(1)"
fi

echo "-- upgrade"
stop
printf '# changed by an administrator\n' >>"$machine/etc/bunko/bunko.conf"
inside dpkg -i /tmp/newer.deb
grep -q 'changed by an administrator' "$machine/etc/bunko/bunko.conf" || fail "the configuration was replaced"
as_bunko
assert_kept

echo "-- wrong starts"
refused() { # STATUS WORDS COMMAND...
  local status=0 expected=$1 words=$2
  shift 2
  inside "$@" >"$work/log" 2>&1 || status=$?
  [[ $status == "$expected" ]] || { cat "$work/log" >&2; fail "status $status instead of $expected: $*"; }
  grep -q -F -- "$words" "$work/log" || { cat "$work/log" >&2; fail "'$words' is not said: $*"; }
}
serve_by() { refused "$1" "$2" setpriv --reuid="$3" --regid="$4" --clear-groups /usr/bin/bunko serve --config /etc/bunko/bunko.conf "${@:5}"; }
serve_by 1 'cannot open the data directory /var/lib/bunko' bunko bunko --logpath /tmp/second.log
serve_by 1 'cannot bind 127.0.0.1:27917: Address already in use' bunko bunko --logpath /tmp/second.log --dbpath /tmp/second \
  --pidfilepath /tmp/second.pid --no-unix-socket
serve_by 1 'belongs to user' nobody nogroup --dbpath /var/lib/bunko --logpath /tmp/nobody.log
sed -i 's/^net:/nett:/' "$machine/etc/bunko/bunko.conf"
serve_by 2 'nett' bunko bunko
sed -i 's/^nett:/net:/' "$machine/etc/bunko/bunko.conf"
serve_by 2 '--fork' bunko bunko --fork
stop

echo "-- removal and purge"
inside dpkg --remove bunko
[[ -d $machine/var/lib/bunko/log ]] || fail "a removal without a purge took the data"
inside dpkg --purge bunko
assert_nothing_left 'var/lib/dpkg' 'var/log/(dpkg|alternatives)' 'var/cache' 'etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$' 'etc/\.pwd\.lock$' \
  'var/lib/logrotate' '(run|tmp|proc|dev)/'
