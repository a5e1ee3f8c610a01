use super::*;
use crate::tls::Verification;
use crate::write_concern::Acknowledgement;
use proptest::prelude::*;

fn parse(text: &str) -> Uri {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    text.parse::<Uri>().expect_err(text).to_string()
}

/// Percent-encodes every character except letters, digits and `-._~`.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[test]
fn options_are_read() {
    let uri = parse(
        "mongodb://db.example:27100/app?directConnection=true&appName=load%20test&w=majority&journal=true\
         &wtimeoutMS=5000&connectTimeoutMS=250&socketTimeoutMS=0&readPreference=secondaryPreferred\
         &retryWrites=false&loadBalanced=false",
    );
    assert_eq!(uri.address(), "db.example:27100");
    assert_eq!(uri.database.as_deref(), Some("app"));
    assert_eq!(uri.app_name.as_deref(), Some("load test"));
    let timeout = Some(Duration::from_secs(5));
    assert_eq!(uri.write_concern, Some(WriteConcern { w: Acknowledgement::Majority, journal: Some(true), timeout }));
    assert_eq!(uri.connect_timeout, Duration::from_millis(250));
    assert_eq!(uri.server_selection_timeout, uri.connect_timeout);
    assert_eq!((uri.socket_timeout, uri.direct_connection), (None, true));
    assert_eq!(uri.read_preference, ReadPreference::SecondaryPreferred);
    let uri = parse("mongodb://a/?serverSelectionTimeoutMS=7&socketTimeoutMS=8&replicaSet=rs0&SSL=false&tls=false");
    assert_eq!((uri.server_selection_timeout.as_millis(), uri.replica_set.as_deref()), (7, Some("rs0")));
    assert_eq!((uri.socket_timeout, uri.tls), (Some(Duration::from_millis(8)), None));
}

#[test]
fn omitted_parts_have_their_defaults() {
    let uri = parse("mongodb://localhost");
    assert_eq!((uri.address().as_str(), uri.connect_timeout.as_secs()), ("localhost:27017", 10));
    assert_eq!((&uri.database, &uri.write_concern, &uri.credential), (&None, &None, &None));
    assert_eq!((uri.read_preference, uri.direct_connection), (ReadPreference::Primary, false));
    // The slash before the options may be omitted.
    assert_eq!(parse("mongodb://localhost?appName=x").app_name.as_deref(), Some("x"));
}

#[test]
fn options_for_pools_and_retries_of_drivers_change_nothing() {
    let plain = parse("mongodb://a/?appName=x");
    let options = "retryWrites=true&retryReads=false&maxPoolSize=5&compressors=zstd,snappy&uuidRepresentation=standard";
    assert_eq!(format!("{:?}", parse(&format!("mongodb://a/?{options}&appName=x"))), format!("{plain:?}"));
    assert!(refusal("mongodb://a/?retryWrites=perhaps").contains("'perhaps'"));
}

#[test]
fn hosts_are_read() {
    let address = |text: &str| parse(text).address();
    assert_eq!(address("mongodb://[::1]:27018/"), "[::1]:27018");
    assert_eq!(address("mongodb://[FE80::1]"), "[fe80::1]:27017");
    assert_eq!(address("mongodb://B:1,a,10.0.0.1:3/"), "b:1,a:27017,10.0.0.1:3");
    assert_eq!(address("mongodb://%2Ftmp%2Fmongodb-27017.sock/db"), "/tmp/mongodb-27017.sock");
    let hosts = parse("mongodb://%2Ftmp%2Fa.sock,b:2").hosts;
    assert_eq!(hosts, [Host::Unix("/tmp/a.sock".into()), Host::Tcp { name: "b".into(), port: 2 }]);
    assert_eq!((hosts[0].port(), hosts[1].port()), (None, Some(2)));
}

#[test]
fn credentials_are_read() {
    let credential = |text: &str| {
        let found = parse(text).credential.expect("one");
        (found.user, found.password, found.source, found.mechanism)
    };
    let scram = |user: &str, password: &str, source: &str| (user.into(), password.into(), source.into(), None);
    assert_eq!(credential("mongodb://u:p@h"), scram("u", "p", "admin"));
    assert_eq!(credential("mongodb://u:p@h/db"), scram("u", "p", "db"));
    assert_eq!(credential("mongodb://u:p@h/db?authSource=other"), scram("u", "p", "other"));
    assert_eq!(credential("mongodb://u%40x:%3a%2f%25+%C3%A9@h"), scram("u@x", ":/%+é", "admin"));
    assert_eq!(credential("mongodb://u:@h"), scram("u", "", "admin"));
    let plain = credential("mongodb://u:p@h/?authMechanism=PLAIN&tls=true");
    assert_eq!(plain, ("u".into(), "p".into(), "$external".into(), Some(Mechanism::Plain)));
    let sha1 = credential("mongodb://u:p@h/?authMechanism=SCRAM-SHA-1");
    assert_eq!(sha1.3, Some(Mechanism::ScramSha1));
    let x509 = "mongodb://h/db?authMechanism=MONGODB-X509&tls=true&tlsCertificateKeyFile=me.pem";
    assert_eq!(credential(x509), (String::new(), String::new(), "$external".into(), Some(Mechanism::X509)));
    assert_eq!(credential(&x509.replace("h/", "CN%3Dann%2CO%3DBunko@h/")).0, "CN=ann,O=Bunko");
    // authSource alone is not a credential.
    assert_eq!(parse("mongodb://h/?authSource=db").credential, None);
}

#[test]
fn tls_options_are_read() {
    let tls = |options: &str| parse(&format!("mongodb://h/?{options}")).tls.expect("asked for");
    let strict = TlsOptions {
        ca_file: None,
        certificate_key_file: None,
        certificate_key_password: None,
        verification: Verification::CertificateAndName,
    };
    assert_eq!(tls("tls=true"), strict);
    assert_eq!(tls("ssl=true&tlsInsecure=false"), strict);
    assert_eq!(tls("tls=true&tlsAllowInvalidHostnames=true").verification, Verification::Certificate);
    assert_eq!(tls("tls=true&tlsAllowInvalidCertificates=true").verification, Verification::Nothing);
    assert_eq!(tls("tls=true&tlsInsecure=true").verification, Verification::Nothing);
    let files = tls("tls=true&tlsCAFile=%2Fca.pem&tlsCertificateKeyFile=/me.pem");
    let files = (files.ca_file.as_deref(), files.certificate_key_file.as_deref());
    assert_eq!(files, (Some("/ca.pem".as_ref()), Some("/me.pem".as_ref())));
}

#[test]
fn options_that_are_not_honoured_are_refused_by_name() {
    assert!(refusal("mongodb+srv://a").contains("does not look up SRV records"));
    for (options, named) in [
        ("readConcernLevel=local", "option 'readConcernLevel'"),
        ("loadBalanced=true", "loadBalanced"),
        ("tlsCertificateKeyFilePassword=x", "'tlsCertificateKeyFilePassword' without tls=true"),
        ("tlsCAFile=x", "'tlsCAFile' without tls=true"),
        ("tls=false&tlsInsecure=true", "'tlsInsecure' without tls=true"),
    ] {
        let message = refusal(&format!("mongodb://a/?{options}"));
        assert!(message.contains(named) && message.contains("not supported"), "{message}");
    }
    for mechanism in ["GSSAPI", "MONGODB-AWS", "MONGODB-OIDC", "MONGODB-CR", "scram-sha-1"] {
        let message = refusal(&format!("mongodb://u:p@a/?authMechanism={mechanism}"));
        assert!(message.contains(mechanism), "{message}");
    }
    assert!(refusal("mongodb://u:p@a/?authMechanism=PLAIN").contains("without tls=true"));
    let x509 = "authMechanism=MONGODB-X509&tls=true";
    assert!(refusal(&format!("mongodb://a/?{x509}")).contains("without tls=true and tlsCertificateKeyFile"));
    let x509 = format!("{x509}&tlsCertificateKeyFile=me.pem");
    assert!(refusal(&format!("mongodb://a/?{x509}&authSource=admin")).contains("authSource other than $external"));
    assert!(refusal(&format!("mongodb://u:p@a/?{x509}")).contains("a password"));
    assert!(refusal("mongodb://a,b/?directConnection=true").contains("more than one host"));
    assert!(refusal("mongodb://%2Ftmp%2Fa.sock/?tls=true").contains("Unix domain socket"));
}

#[test]
fn malformed_parts_are_named() {
    for (text, named) in [
        ("http://a", "'http', not with mongodb://"),
        ("localhost", "'localhost', not with"),
        ("mongodb://", "no host"),
        ("mongodb://a,,b", "no host"),
        ("mongodb:///tmp/a.sock", "no host"),
        ("mongodb://a:0", "port '0'"),
        ("mongodb://a:99999", "port '99999'"),
        ("mongodb://a:+1", "port '+1'"),
        ("mongodb://a:", "port ''"),
        ("mongodb://[::1", "host '[::1'"),
        ("mongodb://[::1]x", "host '[::1]x'"),
        ("mongodb://%2Ftmp%2Fa", "host '%2Ftmp%2Fa'"),
        ("mongodb://a/b.c", "database 'b.c'"),
        ("mongodb://a/?w=51", "option 'w' does not take '51'"),
        ("mongodb://a/?journal=yes", "'journal' does not take 'yes'"),
        ("mongodb://a/?connectTimeoutMS=0", "'connectTimeoutMS' does not take '0'"),
        ("mongodb://a/?readPreference=any", "'readPreference' does not take 'any'"),
        ("mongodb://a/?w", "'w' has no value"),
        ("mongodb://a/?authSource=", "'authSource' has no value"),
        ("mongodb://a/%zz", "percent-encoded"),
        ("mongodb://a/?appName=%f", "percent-encoded"),
        ("mongodb://a/?tls=true&ssl=false", "contradict"),
        ("mongodb://a/?w=0&journal=true", "contradict"),
        ("mongodb://a/?tls=true&tlsInsecure=true&tlsAllowInvalidHostnames=true", "contradict"),
        ("mongodb://@a", "no user"),
        ("mongodb://:p@a", "no user"),
        ("mongodb://u@a", "no password"),
        ("mongodb://a/?authMechanism=SCRAM-SHA-1", "no user"),
    ] {
        let message = refusal(text);
        assert!(message.contains(named), "{text}: {message}");
    }
}

#[test]
fn no_message_shows_a_password() {
    for text in [
        "mongo://user:secret@h",
        "user:secret@h",
        "mongodb://user:sec:secret@h",
        "mongodb://user:secret@secret@h",
        "mongodb://user:secret/secret@h/db",
        "mongodb://user:secret?secret@h/db",
        "mongodb://user:secret/x?secret@h/db",
        "mongodb://user:secret%@h",
        "mongodb://user:secret%ff@h",
        "mongodb://user:secret[@h",
    ] {
        let message = refusal(text);
        assert!(!message.contains("secret"), "{message}");
        let redacted = Uri::redact(text);
        assert!(!redacted.contains("secret") && redacted.ends_with(&text[text.len() - 1..]), "{redacted}");
    }
    let uri = parse("mongodb://user:secret@h/db?authSource=x");
    assert!(!format!("{uri:?}").contains("secret"));
}

#[test]
fn redacted_strings_keep_the_rest() {
    assert_eq!(Uri::redact("mongodb://u:p@h:1,i/db?appName=a%40b"), "mongodb://***@h:1,i/db?appName=a%40b");
    assert_eq!(Uri::redact("mongodb://u:p@h/?appName=a@b"), "mongodb://***@h/?appName=a@b");
    assert_eq!(Uri::redact("mongodb://h/?appName=a@b"), "mongodb://h/?appName=a@b");
    assert_eq!(Uri::redact("/data/dump"), "/data/dump");
    let of_a_key = "mongodb://u:p@h/?tlsCertificateKeyFilePassword=secret&w=1&TLSCertificateKeyFilePassword=too";
    let shown = "mongodb://***@h/?tlsCertificateKeyFilePassword=***&w=1&TLSCertificateKeyFilePassword=***";
    assert_eq!(Uri::redact(of_a_key), shown);
    let failure = refusal("mongodb://h/?tls=true&tlsCertificateKeyFilePassword=se%zzcret");
    assert_eq!(failure, "connection string: the value of 'tlsCertificateKeyFilePassword' is not percent-encoded UTF-8");
}

proptest! {
    #[test]
    fn encoded_credentials_come_back(user in ".+", password in ".*", host in "[a-z]{1,9}", port in 1_u16..) {
        let text = format!("mongodb://{}:{}@{host}:{port}/db", encode(&user), encode(&password));
        let uri = parse(&text);
        let credential = uri.credential.expect("one");
        prop_assert_eq!((credential.user, credential.password), (user, password));
        prop_assert_eq!(uri.hosts, vec![Host::Tcp { name: host, port }]);
    }

    #[test]
    fn addresses_come_back(hosts in proptest::collection::vec(("[a-z0-9.-]{1,9}", 1_u16..), 1..9)) {
        let uri = Uri { hosts: hosts.into_iter().map(|(name, port)| Host::Tcp { name, port }).collect(), ..parse("mongodb://h") };
        prop_assert_eq!(parse(&format!("mongodb://{}", uri.address())), uri);
    }

    #[test]
    fn nothing_panics(text in "(mongodb://)?[a-z%2F:@,/?=&#\\[\\]é]*") {
        let _ = text.parse::<Uri>();
        let _ = Uri::redact(&text);
    }
}
