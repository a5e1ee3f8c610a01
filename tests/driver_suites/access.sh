# The suites of logins, certificates and TLS: part of tests/driver_suites/run, which has the shared functions.
#
# Three servers: one asks for logins, one accepts only TLS, and one does both. The certificates come with PyMongo's
# source. Go's tests want a user of the same name, and the key in more forms.

GO_ACCESS_DRIVER='./x/mongo/driver/auth/... ./x/mongo/driver/integration/...'
GO_ACCESS_CLIENT='TestClient$|TestHandshake|TestErrors|TestSDAMErrorHandling|TestSessions'
GO_ACCESS_TLS='TestClient$|TestHandshake|TestErrors'
PYMONGO_ACCESS=(auth auth_spec ssl)

# Starts the three servers, once. `of_logins`, `of_tls` and `of_both` are their ports.
start_access_servers() {
  [[ -z ${of_logins:-} ]] || return 0
  local source environment
  fetch_pymongo
  certificates="$work/certificates"
  mkdir -p "$certificates"
  cp "$source"/test/certificates/*.pem "$certificates"
  openssl pkcs8 -topk8 -nocrypt -in "$certificates/client.pem" -out "$work/plain.key"
  openssl pkcs8 -topk8 -v2 aes256 -passout pass:password -in "$certificates/client.pem" -out "$work/encrypted.key"
  openssl x509 -in "$certificates/client.pem" -out "$work/client.crt"
  cat "$work/client.crt" "$work/plain.key" >"$certificates/client-pkcs8.pem"
  cat "$work/client.crt" "$work/encrypted.key" >"$certificates/client-pkcs8-encrypted.pem"
  local tls=(--tlsMode requireTLS --tlsCertificateKeyFile "$certificates/server.pem" --tlsCAFile "$certificates/ca.pem"
    --tlsAllowConnectionsWithoutCertificates)
  export MONGO_INITDB_ROOT_USERNAME=user MONGO_INITDB_ROOT_PASSWORD=password
  start_server logins --auth --replSet rs0
  of_logins=$port
  start_server both --auth "${tls[@]}"
  of_both=$port
  unset MONGO_INITDB_ROOT_USERNAME MONGO_INITDB_ROOT_PASSWORD
  start_server tls "${tls[@]}"
  of_tls=$port
}

# go_access_tests LOG PACKAGES PATTERN: runs the tests of those packages that match the pattern.
go_access_tests() {
  # shellcheck disable=SC2086
  (cd "$module" && go test -mod=mod -count=1 -v -timeout 20m -run "$3" $2 || true) >>"$1" 2>&1
}

go_access_suite() {
  command -v go >/dev/null || { missing="there is no go on this machine"; return 77; }
  command -v openssl >/dev/null || { missing="there is no openssl on this machine"; return 77; }
  local module log="$work/go_access.log"
  fetch_go_driver
  start_access_servers
  : >"$log"
  (
    export AUTH=auth TOPOLOGY=replica_set MONGODB_URI="mongodb://user:password@localhost:$of_logins/?authSource=admin&replicaSet=rs0"
    go_access_tests "$log" "$GO_ACCESS_DRIVER" .
    go_access_tests "$log" ./mongo/integration "$GO_ACCESS_CLIENT"
  )
  (
    export SSL=ssl MONGO_GO_DRIVER_CA_FILE="$certificates/ca.pem" MONGO_GO_DRIVER_KEY_FILE="$certificates/client.pem"
    export MONGO_GO_DRIVER_PKCS8_UNENCRYPTED_KEY_FILE="$certificates/client-pkcs8.pem"
    export MONGO_GO_DRIVER_PKCS8_ENCRYPTED_KEY_FILE="$certificates/client-pkcs8-encrypted.pem"
    MONGODB_URI="mongodb://localhost:$of_tls/" go_access_tests "$log" ./x/mongo/driver/integration/... .
    export AUTH=auth MONGODB_URI="mongodb://user:password@localhost:$of_both/?authSource=admin"
    go_access_tests "$log" ./x/mongo/driver/integration/... .
    go_access_tests "$log" ./mongo/integration "$GO_ACCESS_TLS"
  )
  python3 "$here/judge.py" go "$log" "$here/exceptions.go_access"
}

pymongo_access_suite() {
  command -v python3 >/dev/null || { missing="there is no python3 on this machine"; return 77; }
  command -v openssl >/dev/null || { missing="there is no openssl on this machine"; return 77; }
  local source environment log="$work/pymongo_access.log"
  fetch_pymongo
  start_access_servers
  : >"$log"
  pymongo_tests "$of_logins" auth auth_spec
  pymongo_tests "$of_tls" ssl
  pymongo_tests "$of_both" auth ssl
  python3 "$here/judge.py" pymongo "$log" "$here/exceptions.pymongo_access"
}

# pymongo_tests PORT NAME...: PyMongo skips its tests of logins unless all of them are requested.
pymongo_tests() {
  local name at=$1
  for name in "${@:2}"; do
    (
      cd "$source"
      export DB_IP=localhost DB_PORT=$at CERT_DIR="$certificates" CLIENT_PEM="$certificates/client.pem" CA_PEM="$certificates/ca.pem"
      [[ $at == "$of_tls" ]] || export AUTH=auth DB_USER=user DB_PASSWORD=password
      [[ $at == "$of_logins" ]] || export SSL=ssl
      timeout 900 "$environment/bin/python" -m pytest "test/test_$name.py" -m "" -p no:cacheprovider -q -rfE --tb=short || true
    ) >>"$log" 2>&1
  done
}
