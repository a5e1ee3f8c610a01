#!/usr/bin/env bash
# Checks the .rpm, and installs and removes it.
source "$(dirname "$0")/overlay.sh"
has rpm "the .rpm" || exit 0

cp "$work"/one/bunko-*.rpm "$machine/tmp/bunko.rpm"
inside rpm --checksig --nosignature /tmp/bunko.rpm
# The packages of this machine are dpkg's: rpm knows none that the .rpm depends on.
inside rpm --force-debian --install --nodeps /tmp/bunko.rpm
inside rpm --verify --nodeps bunko || fail "files differ from the package's sums"
assert_programs /usr/lib/bunko/bin inside
assert_monitoring "$machine/usr/share/bunko/monitoring"
other_port
install -d -o 0 -m 0777 "$machine/run/bunko"
as_bunko
insert
assert_kept
stop
inside rpm --force-debian --erase bunko
[[ ! -e $machine/usr/bin/bunko && -s $machine/etc/bunko/bunko.conf.rpmsave ]] || fail "what a removal leaves"
for directory in /usr/lib/bunko /usr/share/bunko /usr/share/doc/bunko; do
  [[ ! -e $machine$directory ]] || fail "a removal leaves $directory"
done
