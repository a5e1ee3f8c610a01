//! Client addresses from which users may log in.

use super::{Guarded, assert_refused, attempt};
use crate::logins::{run, who};
use bunko_client::{Connection, Uri};

/// A restriction that is set while its user is logged in takes effect with the next command.
#[test]
fn a_user_whose_address_is_no_longer_allowed_is_logged_out() {
    let mut guarded = Guarded::start();
    let mut user = guarded.user("user", "['readWriteAnyDatabase']");
    let mut other = guarded.user("other", "['readWriteAnyDatabase']");
    let elsewhere = "authenticationRestrictions: [{clientSource: ['10.0.0.0/8']}]";
    run(
        &mut guarded.root,
        "admin",
        "{updateUser: 'user', authenticationRestrictions: [{clientSource: ['127.0.0.1']}]}",
    );
    assert_eq!(attempt(&mut user, "own", "{insert: 'c', documents: [{}]}").0, 0);
    run(&mut guarded.root, "admin", &format!("{{updateUser: 'user', {elsewhere}}}"));
    assert_refused(&mut user, "own", "{insert: 'c', documents: [{}]}");
    assert_eq!(who(&mut user), "[]");
    let login = format!("mongodb://user:p@{}/", guarded.server.address());
    let login = Connection::connect(&login.parse::<Uri>().expect("valid"));
    assert!(login.is_err_and(|error| error.to_string().contains("Authentication failed")));
    // A role may restrict its users, too.
    let role = format!("{{createRole: 'office', privileges: [], roles: [], {elsewhere}}}");
    run(&mut guarded.root, "admin", &role);
    assert_eq!(attempt(&mut other, "own", "{find: 'c'}").0, 0);
    run(&mut guarded.root, "admin", "{grantRolesToUser: 'other', roles: ['office']}");
    assert_refused(&mut other, "own", "{find: 'c'}");
    guarded.server.logged("authentication restrictions are no longer met");
}
