//! `$$USER_ROLES`: pipelines whose result depends on the user's roles.

use super::Guarded;
use crate::logins::run;
use crate::peer::first_batch;

#[test]
fn a_view_shows_to_each_what_their_roles_allow() {
    let mut guarded = Guarded::start();
    run(
        &mut guarded.root,
        "own",
        "{insert: 'c', documents: [{_id: 1, for: ['doctor']}, {_id: 2, for: ['clerk', 'doctor']}]}",
    );
    let asked = "{$expr: {$gt: [{$size: {$setIntersection: ['$for', '$$USER_ROLES.role']}}, 0]}}";
    run(&mut guarded.root, "own", &format!("{{create: 'v', viewOn: 'c', pipeline: [{{$match: {asked}}}]}}"));
    let reads = "[{resource: {db: 'own', collection: 'v'}, actions: ['find']}]";
    run(&mut guarded.root, "own", &format!("{{createRole: 'clerk', privileges: {reads}, roles: []}}"));
    // A doctor has the role of a clerk, too.
    run(&mut guarded.root, "own", "{createRole: 'doctor', privileges: [], roles: ['clerk']}");
    let mut clerk = guarded.user("clerks", "[{role: 'clerk', db: 'own'}]");
    let mut doctor = guarded.user("doctors", "[{role: 'doctor', db: 'own'}]");
    let sorted = "{$sortArray: {input: '$$USER_ROLES', sortBy: {_id: 1}}}";
    let find = &format!("{{find: 'v', sort: {{_id: 1}}, projection: {{_id: 1, roles: {sorted}}}}}");
    let clerks = r#"{_id: "own.clerk", role: "clerk", db: "own"}"#;
    let found = first_batch(&run(&mut clerk, "own", find));
    assert_eq!(found, [format!("{{_id: 2, roles: [{clerks}]}}")]);
    let doctors = format!(r#"[{clerks}, {{_id: "own.doctor", role: "doctor", db: "own"}}]"#);
    let found = first_batch(&run(&mut doctor, "own", find));
    assert_eq!(found, [format!("{{_id: 1, roles: {doctors}}}"), format!("{{_id: 2, roles: {doctors}}}")]);
    // The next command on an open connection sees a newly granted role.
    run(&mut guarded.root, "admin", "{grantRolesToUser: 'clerks', roles: [{role: 'doctor', db: 'own'}]}");
    assert_eq!(first_batch(&run(&mut clerk, "own", find)).len(), 2);
}
