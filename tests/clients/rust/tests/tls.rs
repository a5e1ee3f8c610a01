//! TLS, passwords and certificates, on the server that BUNKO_TLS_URI names, with the certificates of
//! BUNKO_TLS_CERTIFICATES.

use bunko_clients_rust::code;
use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{AuthMechanism, ClientOptions, Credential, Tls, TlsOptions};
use mongodb::sync::Client;
use std::path::PathBuf;
use std::time::Duration;

/// As RFC 2253 writes it.
const ANN: &str = r"CN=ann,OU=clients\, tests,O=Bunko";
const DATABASE: &str = "clients_rust_tls";

fn file(name: &str) -> PathBuf {
    PathBuf::from(std::env::var("BUNKO_TLS_CERTIFICATES").unwrap()).join(format!("{name}.pem"))
}

/// A client that trusts an authority, and may show a certificate; `None` where there is no server.
fn connect(authority: &str, certificate: Option<&str>, credential: Credential) -> Option<Client> {
    let Ok(uri) = std::env::var("BUNKO_TLS_URI") else {
        println!("SKIPPED: BUNKO_TLS_URI names no server");
        return None;
    };
    let mut options = ClientOptions::parse(uri).run().unwrap();
    let mut tls = TlsOptions::default();
    tls.ca_file_path = Some(file(authority));
    tls.cert_key_file_path = certificate.map(file);
    options.tls = Some(Tls::Enabled(tls));
    options.credential = Some(credential);
    options.server_selection_timeout = Some(Duration::from_secs(3));
    Some(Client::with_options(options).unwrap())
}

fn scram(mechanism: AuthMechanism, password: &str) -> Credential {
    let mut credential = Credential::default();
    credential.username = Some("root".to_owned());
    credential.password = Some(password.to_owned());
    credential.source = Some("admin".to_owned());
    credential.mechanism = Some(mechanism);
    credential
}

fn by_certificate() -> Credential {
    let mut credential = Credential::default();
    credential.mechanism = Some(AuthMechanism::MongoDbX509);
    credential
}

fn ping(client: &Client) -> Result<Document, Error> {
    client.database(DATABASE).run_command(doc! { "ping": 1 }).run()
}

#[test]
fn passwords_over_tls() {
    for mechanism in [AuthMechanism::ScramSha1, AuthMechanism::ScramSha256] {
        let Some(client) = connect("ca", None, scram(mechanism.clone(), "secret")) else { return };
        let things = client.database(DATABASE).collection::<Document>(&format!("of_{}", mechanism.as_str()));
        things.drop().run().unwrap();
        let pad = "x".repeat(10_000);
        things.insert_many((0..500).map(|i| doc! { "_id": i, "pad": &pad })).run().unwrap();
        let found: Vec<_> = things.find(doc! {}).batch_size(50).run().unwrap().map(Result::unwrap).collect();
        assert!(found.len() == 500 && found.iter().all(|thing| thing.get_str("pad").unwrap() == pad));
        things.drop().run().unwrap();
        let wrong = connect("ca", None, scram(mechanism, "wrong")).unwrap();
        let refusal = ping(&wrong).unwrap_err();
        assert!(matches!(refusal.kind.as_ref(), ErrorKind::Authentication { .. }), "{refusal}");
    }
}

#[test]
fn who_is_not_trusted_is_not_spoken_with() {
    for (authority, certificate) in [("other-ca", None), ("ca", Some("stranger"))] {
        let Some(client) = connect(authority, certificate, scram(AuthMechanism::ScramSha256, "secret")) else { return };
        let refusal = ping(&client).unwrap_err();
        assert!(matches!(refusal.kind.as_ref(), ErrorKind::ServerSelection { .. } | ErrorKind::Io(_)), "{refusal}");
    }
}

#[test]
fn logins_by_certificate() {
    let Some(root) = connect("ca", None, scram(AuthMechanism::ScramSha256, "secret")) else { return };
    let external = root.database("$external");
    let roles = [doc! { "role": "read", "db": DATABASE }];
    external.run_command(doc! { "createUser": ANN, "roles": &roles[..] }).run().unwrap();
    let client = connect("ca", Some("ann"), by_certificate()).unwrap();
    let status = client.database("admin").run_command(doc! { "connectionStatus": 1 }).run();
    let nobody = ping(&connect("ca", Some("nobody"), by_certificate()).unwrap());
    let refused = client.database(DATABASE).collection("c").insert_one(doc! { "_id": 1 }).run();
    external.run_command(doc! { "dropUser": ANN }).run().unwrap();
    let status = status.unwrap();
    let users = status.get_document("authInfo").unwrap().get_array("authenticatedUsers").unwrap();
    assert_eq!(users[..], [doc! { "user": ANN, "db": "$external" }.into()]);
    assert_eq!(code(&refused.unwrap_err()), Some(13));
    let nobody = nobody.unwrap_err();
    assert!(matches!(nobody.kind.as_ref(), ErrorKind::Authentication { .. }), "{nobody}");
}
