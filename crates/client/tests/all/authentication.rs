//! Authentication against a fake server that knows one user.

use crate::fake::{self, Session, text};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, ValueRef, base64};
use bunko_client::{ClientError, Connection, Uri};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex};

const SALT: &[u8] = b"0123456789abcdef";
const ITERATIONS: u32 = 4096;

/// How the fake server behaves.
#[derive(Clone, Copy)]
struct Habits {
    mechanism: &'static str,
    /// It continues the conversation that the handshake began.
    takes_up_speculation: bool,
    /// The server is done with its reply to the proof, and expects no further empty message.
    skips_empty_exchange: bool,
    /// It signs with the right key.
    knows_the_password: bool,
}

const MODERN: Habits = Habits {
    mechanism: "SCRAM-SHA-256",
    takes_up_speculation: true,
    skips_empty_exchange: true,
    knows_the_password: true,
};

struct ScramServer {
    habits: Habits,
    names: Arc<Mutex<Vec<String>>>,
    auth_message: String,
    nonce: String,
    verified: bool,
}

fn hmac(mechanism: &str, key: &[u8], bytes: &[u8]) -> Vec<u8> {
    match mechanism {
        "SCRAM-SHA-1" => {
            Hmac::<Sha1>::new_from_slice(key).expect("any").chain_update(bytes).finalize().into_bytes().to_vec()
        }
        _ => Hmac::<Sha256>::new_from_slice(key).expect("any").chain_update(bytes).finalize().into_bytes().to_vec(),
    }
}

fn hash(mechanism: &str, bytes: &[u8]) -> Vec<u8> {
    if mechanism == "SCRAM-SHA-1" { Sha1::digest(bytes).to_vec() } else { Sha256::digest(bytes).to_vec() }
}

/// The user is "ann", the password "pencil".
fn salted_password(mechanism: &str) -> Vec<u8> {
    if mechanism == "SCRAM-SHA-1" {
        // MD5 of "ann:mongo:pencil".
        let digest = b"2975d133243567f66eb706f8e8b06da3";
        pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(digest, SALT, ITERATIONS).to_vec()
    } else {
        pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(b"pencil", SALT, ITERATIONS).to_vec()
    }
}

fn reply(payload: &str, done: bool) -> DocumentBuf {
    let payload = ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: payload.as_bytes() };
    fake::ok().with("conversationId", 7_i32).with("done", done).with("payload", payload)
}

fn payload(command: &DocumentBuf) -> String {
    match command.as_ref().get("payload") {
        Some(ValueRef::Binary { bytes, .. }) => String::from_utf8(bytes.to_vec()).expect("text"),
        other => panic!("no payload but {other:?}"),
    }
}

impl ScramServer {
    fn start(&mut self, command: &DocumentBuf) -> DocumentBuf {
        assert_eq!(text(command, "mechanism"), self.habits.mechanism);
        let message = payload(command);
        let bare = message.strip_prefix("n,,").expect("no channel binding");
        let client_nonce = bare.strip_prefix("n=ann,r=").expect("the user's name").to_owned();
        assert!(base64::decode(&client_nonce).is_some_and(|bytes| bytes.len() >= 24));
        self.nonce = format!("{client_nonce}server");
        let first = format!("r={},s={},i={ITERATIONS}", self.nonce, base64::encode(SALT));
        self.auth_message = format!("{bare},{first},c=biws,r={}", self.nonce);
        reply(&first, false)
    }

    fn proceed(&mut self, command: &DocumentBuf) -> DocumentBuf {
        assert!(matches!(command.as_ref().get("conversationId"), Some(ValueRef::Int32(7))));
        if self.verified {
            return reply("", true);
        }
        let message = payload(command);
        let proof = message.strip_prefix(&format!("c=biws,r={},p=", self.nonce)).expect("the same nonce");
        let mechanism = self.habits.mechanism;
        let salted = salted_password(mechanism);
        let client_key = hmac(mechanism, &salted, b"Client Key");
        let signature = hmac(mechanism, &hash(mechanism, &client_key), self.auth_message.as_bytes());
        let expected: Vec<u8> = client_key.iter().zip(&signature).map(|(key, mask)| key ^ mask).collect();
        if base64::decode(proof) != Some(expected) {
            return fake::refusal(18, "AuthenticationFailed", "Authentication failed.");
        }
        self.verified = true;
        let key: &[u8] = if self.habits.knows_the_password { b"Server Key" } else { b"another key" };
        let signature = hmac(mechanism, &hmac(mechanism, &salted, key), self.auth_message.as_bytes());
        reply(&format!("v={}", base64::encode(&signature)), self.habits.skips_empty_exchange)
    }

    fn hello(&mut self, command: &DocumentBuf) -> DocumentBuf {
        let mut hello = fake::ok().with("ismaster", true).with("maxWireVersion", 25_i32);
        if !text(command, "saslSupportedMechs").is_empty() {
            assert_eq!(text(command, "saslSupportedMechs"), "staff.ann");
            let mechanisms: ArrayBuf = [self.habits.mechanism].into_iter().collect();
            hello.append("saslSupportedMechs", &mechanisms);
        }
        let begun = command.as_ref().get("speculativeAuthenticate").and_then(ValueRef::as_document);
        if let Some(begun) = begun.filter(|_| self.habits.takes_up_speculation) {
            let begun = begun.to_owned();
            assert_eq!(text(&begun, "db"), "staff");
            hello.append("speculativeAuthenticate", &self.start(&begun));
        }
        hello
    }
}

impl Session for ScramServer {
    fn answer(&mut self, name: &str, command: &DocumentBuf) -> DocumentBuf {
        self.names.lock().expect("not poisoned").push(name.to_owned());
        match name {
            "isMaster" => self.hello(command),
            "saslStart" => {
                assert_eq!(text(command, "$db"), "staff");
                self.start(command)
            }
            "saslContinue" => self.proceed(command),
            _ if self.verified => fake::ok(),
            _ => fake::refusal(13, "Unauthorized", "Command requires authentication"),
        }
    }
}

/// Starts a server; returns its address and a list of the names of all commands that it receives.
fn server(habits: Habits) -> (String, Arc<Mutex<Vec<String>>>) {
    let (listener, address) = fake::listener();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    fake::serve(listener, move || ScramServer {
        habits,
        names: Arc::clone(&seen),
        auth_message: String::new(),
        nonce: String::new(),
        verified: false,
    });
    (address, names)
}

fn connect(address: &str, password: &str, options: &str) -> Result<Connection, ClientError> {
    let uri = format!("mongodb://ann:{password}@{address}/staff?connectTimeoutMS=2000&{options}");
    Connection::connect(&uri.parse::<Uri>().expect("valid"))
}

/// Authenticates, pings, and returns the names of the commands that were needed.
fn commands(habits: Habits, options: &str) -> Vec<String> {
    let (address, names) = server(habits);
    let mut connection = connect(&address, "pencil", options).unwrap_or_else(|error| panic!("{error}"));
    connection.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).expect("authenticated");
    drop(connection);
    let names = names.lock().expect("not poisoned");
    names.clone()
}

#[test]
fn the_handshake_saves_a_round_trip() {
    assert_eq!(commands(MODERN, ""), ["isMaster", "saslContinue", "ping"]);
    let mechanism = "authMechanism=SCRAM-SHA-256";
    assert_eq!(commands(MODERN, mechanism), ["isMaster", "saslContinue", "ping"]);
}

#[test]
fn servers_that_do_not_speculate_are_asked_again() {
    let habits = Habits { takes_up_speculation: false, ..MODERN };
    assert_eq!(commands(habits, ""), ["isMaster", "saslStart", "saslContinue", "ping"]);
    let habits = Habits { skips_empty_exchange: false, ..habits };
    assert_eq!(commands(habits, ""), ["isMaster", "saslStart", "saslContinue", "saslContinue", "ping"]);
}

#[test]
fn the_mechanism_is_the_one_that_the_user_has() {
    let habits = Habits { mechanism: "SCRAM-SHA-1", takes_up_speculation: false, ..MODERN };
    assert_eq!(commands(habits, ""), ["isMaster", "saslStart", "saslContinue", "ping"]);
    let habits = Habits { takes_up_speculation: true, ..habits };
    let mechanism = "authMechanism=SCRAM-SHA-1";
    assert_eq!(commands(habits, mechanism), ["isMaster", "saslContinue", "ping"]);
}

#[test]
fn a_wrong_password_is_an_error_that_does_not_show_it() {
    let (address, _) = server(MODERN);
    let error = connect(&address, "ballpoint", "").err().expect("refused");
    let expected = format!(
        "authentication of 'ann' on 'staff' by SCRAM-SHA-256 at {address} failed: \
         Authentication failed. (code 18, AuthenticationFailed)"
    );
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("ballpoint"));
}

#[test]
fn a_server_that_does_not_know_the_password_is_found_out() {
    let (address, _) = server(Habits { knows_the_password: false, ..MODERN });
    let error = connect(&address, "pencil", "").err().expect("refused").to_string();
    assert!(error.ends_with("the server's signature is wrong: it does not know the password"), "{error}");
}

#[test]
fn another_connection_authenticates_too() {
    let (address, names) = server(MODERN);
    let first = connect(&address, "pencil", "").expect("authenticated");
    let mut second = first.open_another().expect("authenticated");
    second.run_command("admin", DocumentBuf::new().with("ping", 1_i32).as_ref()).expect("authenticated");
    let names = names.lock().expect("not poisoned");
    assert_eq!(*names, ["isMaster", "saslContinue", "isMaster", "saslContinue", "ping"]);
}
