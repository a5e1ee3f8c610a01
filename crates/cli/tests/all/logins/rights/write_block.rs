//! Users who may still write while users' writes are blocked, also after a restart.

use super::{ROOT, attempt, open};
use crate::logins::run;
use crate::peer::binary;
use bunko_testkit::process::{Server, temporary_dbpath};

const DIRECT: &str = "?directConnection=true";
const CREATE_AND_DROP: [&str; 2] = ["{create: 'c'}", "{drop: 'c'}"];

fn codes(server: &Server, user: &str) -> Vec<i32> {
    let mut connection = open(server, &format!("{user}:p@"), DIRECT);
    CREATE_AND_DROP.iter().map(|command| attempt(&mut connection, "test", command).0).collect()
}

#[test]
fn only_users_that_may_bypass_the_block_write() {
    let dbpath = temporary_dbpath();
    let options = ["--auth", "--replSet", "rs0", "--replSetHost", "localhost:27017"];
    let start = || Server::start(&binary(), dbpath.path(), &options).expect("started");
    let mut server = start();
    run(&mut open(&server, "", DIRECT), "admin", ROOT);
    let mut root = open(&server, "root:secret@", DIRECT);
    for (name, roles) in [("writer", "'readWriteAnyDatabase'"), ("restorer", "'readWriteAnyDatabase', 'restore'")] {
        run(&mut root, "admin", &format!("{{createUser: '{name}', pwd: 'p', roles: [{roles}]}}"));
    }
    run(&mut root, "admin", "{setUserWriteBlockMode: 1, global: true, reason: 'DiskUseThresholdExceeded'}");
    for _ in 0..2 {
        assert_eq!(codes(&server, "writer"), [371, 371]);
        assert_eq!(codes(&server, "restorer"), [0, 0]);
        server.terminate();
        server = start();
    }
    let mut root = open(&server, "root:secret@", DIRECT);
    let (code, message) = attempt(&mut root, "admin", "{setUserWriteBlockMode: 1, global: false}");
    assert_eq!(code, 20, "{message}");
    run(&mut root, "admin", "{setUserWriteBlockMode: 1, global: false, reason: 'DiskUseThresholdExceeded'}");
    assert_eq!(codes(&server, "writer"), [0, 0]);
}
