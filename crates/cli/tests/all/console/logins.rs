//! Users of the console: their logins, their rights, and the ends of their sessions.

use super::Site;
use std::time::{Duration, Instant};

/// A server with access control and its first user.
fn guarded() -> Site {
    let site = Site::start(&["--auth"]);
    site.run_as_client("", "admin", "{createUser: 'root', pwd: 'secret', roles: ['root']}");
    site
}

const ROOT: &str = "root:secret@";

#[test]
fn only_users_log_in() {
    let site = guarded();
    assert!(site.get("/api/site").body.contains("\"login\":true"));
    let began = Instant::now();
    for (user, password) in [("root", "wrong"), ("root", ""), ("nobody", "secret"), ("", ""), ("admin.root", "secret")]
    {
        assert_eq!(site.log_in(user, password), Err(401), "{user}");
    }
    // Each refusal waits, so passwords cannot be guessed quickly.
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    site.server.logged("Failed to authenticate");
    let token = site.log_in("root", "secret").expect("the right password");
    assert!(token.len() == 64 && token != site.log_in("root", "secret").expect("another session"), "{token}");
    let status = site.run(&token, "admin", "{connectionStatus: 1}").expect_ok();
    assert!(status.contains(r#"[{"user":"root","db":"admin"}]"#), "{status}");
    assert!(!site.server.output_tail().contains("secret"), "{}", site.server.output_tail());
    assert_eq!(site.post("/api/logout", &token, "{}").status, 200);
    assert_eq!(site.run(&token, "admin", "{hello: 1}").status, 401);
}

#[test]
fn a_session_has_the_rights_of_its_user() {
    let site = guarded();
    site.run_as_client(ROOT, "admin", "{createUser: 'ann', pwd: 'p', roles: [{role: 'read', db: 'shop'}]}");
    site.run_as_client(ROOT, "shop", "{insert: 'c', documents: [{a: 1}]}");
    site.run_as_client(ROOT, "other", "{insert: 'c', documents: [{a: 1}]}");
    let token = site.log_in("ann", "p").expect("the right password");
    let find = "{find: 'c', filter: {}}";
    site.run(&token, "shop", find).expect_ok();
    for (database, command) in [
        ("other", find),
        ("admin", "{serverStatus: 1}"),
        ("admin", "{getLog: 'global'}"),
        ("admin", "{killOp: 1, op: 1}"),
        ("admin", "{aggregate: 1, pipeline: [{$currentOp: {allUsers: true}}], cursor: {}}"),
        (
            "shop",
            "{aggregate: 'c', pipeline: [{$lookup: {from: {db: 'other', coll: 'c'}, pipeline: [], as: 'x'}}], cursor: {}}",
        ),
    ] {
        let reply = site.run(&token, database, command);
        assert!(reply.status == 200 && reply.body.contains("\"ok\":0"), "{command}: {reply:?}");
    }
    // A change of the user's rights holds for sessions that have begun.
    site.run_as_client(ROOT, "admin", "{revokeRolesFromUser: 'ann', roles: [{role: 'read', db: 'shop'}]}");
    let reply = site.run(&token, "shop", find);
    assert!(reply.body.contains("\"codeName\":\"Unauthorized\""), "{reply:?}");
    site.run_as_client(ROOT, "admin", "{dropUser: 'ann'}");
    let reply = site.run(&token, "shop", find);
    assert!(reply.status == 401 || reply.body.contains("\"code\":13"), "{reply:?}");
}

#[test]
fn the_address_of_the_browser_is_that_of_the_client() {
    let site = guarded();
    let elsewhere =
        "{createUser: 'far', pwd: 'p', roles: ['root'], authenticationRestrictions: [{clientSource: ['10.9.8.7']}]}";
    site.run_as_client(ROOT, "admin", elsewhere);
    assert_eq!(site.log_in("far", "p"), Err(401));
    let here = "{updateUser: 'far', authenticationRestrictions: [{clientSource: ['127.0.0.1']}]}";
    site.run_as_client(ROOT, "admin", here);
    let token = site.log_in("far", "p").expect("from here");
    site.run(&token, "admin", "{serverStatus: 1}").expect_ok();
}

#[test]
fn a_user_without_a_first_user_is_none() {
    let site = Site::start(&["--auth"]);
    // The exception for this machine lets a client make the first user, and the console does not make users.
    assert_eq!(site.log_in("", ""), Err(401));
    assert_eq!(site.log_in("root", ""), Err(401));
}

#[test]
fn sessions_have_a_maximum() {
    let site = Site::start(&[]);
    let tokens: Vec<String> = (0..16).map(|_| site.log_in("", "").expect("there is room")).collect();
    assert_eq!(site.log_in("", ""), Err(503));
    site.run(&tokens[0], "admin", "{hello: 1}").expect_ok();
    site.post("/api/logout", &tokens[3], "{}");
    site.log_in("", "").expect("there is room again");
}
