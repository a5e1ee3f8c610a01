# Checks of files that several packages have. A script that reads this file has `root` and `fail`.

# assert_programs DIRECTORY COMMAND...: the links there, called by COMMAND, act as MongoDB's programs.
assert_programs() {
  local directory=$1 pair said
  shift
  for pair in mongo:shell mongosh:shell mongod:serve mongodump:dump mongorestore:restore mongoimport:import mongoexport:export \
    mongostat:stat mongotop:top; do
    said=$("$@" "$directory/${pair%:*}" --help) || fail "$directory/${pair%:*} does not run"
    [[ $said == *"Usage: ${pair%:*} ${pair#*:} "* || $said == *"Usage: bunko ${pair#*:} "* ]] || fail "$directory/${pair%:*} is not bunko ${pair#*:}"
  done
  [[ $("$@" "$directory/mongosh" --nodb --quiet --eval '1 + 1') == 2 ]] || fail "$directory/mongosh runs no script"
}
# assert_monitoring DIRECTORY: it has the files of deploy/monitoring, unchanged.
assert_monitoring() { diff -r "$root/deploy/monitoring" "$1" || fail "the files for Prometheus and Grafana in $1"; }
