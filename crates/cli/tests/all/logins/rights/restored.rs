//! Users from a MongoDB dump log in with their old passwords.

use super::{Guarded, assert_refused, bunko, open};
use crate::logins::run;
use bunko_testkit::shell;
use std::fs;

/// A user of `shop` with the password "old secret", as MongoDB 8 stores it; the keys were derived independently of this
/// program.
const USER: &str = "{_id: 'shop.ann', userId: UUID('00112233-4455-4677-8899-aabbccddeeff'), user: 'ann', db: 'shop', \
    credentials: {'SCRAM-SHA-1': {iterationCount: 10000, salt: 'AAECAwQFBgcICQoLDA0ODw==', \
    storedKey: 'x8+sYJ2WCjQtVZpZZqoiIfGixWg=', serverKey: 'yZl7WWPSJvHn2DdgoqgVEkFigt4='}, \
    'SCRAM-SHA-256': {iterationCount: 15000, salt: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==', \
    storedKey: 'DKOJOLtXH7nyp+6mTI+3bDlgTamhYXtcxfIm28Z2ax4=', \
    serverKey: 'YFvSNL8bcjvKwWlZBc3b69/d4IGVKoClH4gs9JpH+l4='}}, roles: [{role: 'clerk', db: 'shop'}]}";
const ROLE: &str = "{_id: 'shop.clerk', role: 'clerk', db: 'shop', \
    privileges: [{resource: {db: 'shop', collection: 'orders'}, actions: ['find']}], roles: []}";
const VERSION: &str = "{_id: 'authSchema', currentVersion: 5}";

#[test]
fn users_of_a_dump_log_in_with_their_passwords() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "shop", "{insert: 'orders', documents: [{_id: 1}]}");
    let directory = tempfile::tempdir().expect("a directory");
    let admin = directory.path().join("admin");
    fs::create_dir(&admin).expect("made");
    for (collection, document) in [("system.users", USER), ("system.roles", ROLE), ("system.version", VERSION)] {
        let document = shell::parse_document(document).expect("a document");
        fs::write(admin.join(format!("{collection}.bson")), document.as_ref().as_bytes()).expect("written");
        let metadata = format!(r#"{{"indexes":[],"collectionName":"{collection}","type":"collection"}}"#);
        fs::write(admin.join(format!("{collection}.metadata.json")), metadata).expect("written");
    }
    guarded.user("restorer", "['restore']");
    let uri = format!("mongodb://restorer:p@{}/", guarded.server.address());
    let restored = bunko(&["restore", "--uri", &uri, directory.path().to_str().expect("UTF-8")], &[]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    for mechanism in ["SCRAM-SHA-1", "SCRAM-SHA-256"] {
        let options = format!("?authSource=shop&authMechanism={mechanism}");
        let mut ann = open(&guarded.server, "ann:old%20secret@", &options);
        run(&mut ann, "shop", "{find: 'orders'}");
        assert_refused(&mut ann, "shop", "{insert: 'orders', documents: [{}]}");
    }
    // Users that existed before are kept.
    open(&guarded.server, "root:secret@", "");
    // A user who may create users cannot use this command to read other collections.
    let mut admin = guarded.user("admin", "['userAdminAnyDatabase']");
    assert_refused(&mut admin, "admin", "{_mergeAuthzCollections: 1, tempUsersCollection: 'shop.orders'}");
    let mut owner = guarded.user("owner", "[{role: 'dbOwner', db: 'shop'}]");
    assert_refused(&mut owner, "admin", "{_mergeAuthzCollections: 1, tempUsersCollection: 'shop.orders', db: 'shop'}");
}
