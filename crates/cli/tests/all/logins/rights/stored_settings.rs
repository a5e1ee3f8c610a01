//! Commands that store a setting of the server need the right to change the setting, and none on the collection that
//! holds it.

use super::{ROOT, attempt, open};
use crate::logins::run;
use crate::peer::binary;
use bunko_bson::ValueRef;
use bunko_testkit::process::{Server, temporary_dbpath};

const DIRECT: &str = "?directConnection=true";
const STORED: [&str; 4] = [
    "{replSetReconfig: {_id: 'rs0', version: 7, members: [{_id: 0, host: 'localhost:27017'}]}}",
    "{setDefaultRWConcern: 1, defaultReadConcern: {level: 'local'}}",
    "{setClusterParameter: {changeStreamOptions: {preAndPostImages: {expireAfterSeconds: 100}}}}",
    "{setFeatureCompatibilityVersion: '8.0', confirm: true}",
];

#[test]
fn an_administrator_of_the_cluster_stores_every_setting() {
    let dbpath = temporary_dbpath();
    let options = ["--auth", "--replSet", "rs0", "--replSetHost", "localhost:27017"];
    let start = || Server::start(&binary(), dbpath.path(), &options).expect("started");
    let mut server = start();
    run(&mut open(&server, "", DIRECT), "admin", ROOT);
    let mut root = open(&server, "root:secret@", DIRECT);
    run(&mut root, "admin", "{createUser: 'operator', pwd: 'p', roles: ['clusterAdmin']}");
    let mut operator = open(&server, "operator:p@", DIRECT);
    for command in STORED {
        let (code, message) = attempt(&mut operator, "admin", command);
        assert_eq!(code, 0, "{command}: {message}");
    }
    server.terminate();
    let server = start();
    let reply = run(&mut open(&server, "operator:p@", DIRECT), "admin", "{replSetGetConfig: 1}");
    let config = reply.as_ref().get("config").and_then(ValueRef::as_document).expect("a configuration");
    assert!(matches!(config.get("version"), Some(ValueRef::Int32(7))), "{config:?}");
}
