//! Ways around a check: an option that hides another one, a field that occurs twice, a misleading name.

use super::{Guarded, assert_refused, attempt, shown};
use crate::logins::run;
use bunko_bson::ValueRef;

/// A user who may create capped collections must not create a view of a collection that they cannot read.
#[test]
fn no_option_of_create_hides_that_it_makes_a_view() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{profile: 2}");
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{_id: 1}]}");
    let mut user = guarded.user("writer", "[{role: 'readWrite', db: 'own'}]");
    assert_refused(&mut user, "own", "{find: 'system.profile'}");
    for options in ["", ", capped: true, size: 4096", ", capped: true", ", size: 4096, capped: 1, pipeline: []"] {
        assert_refused(&mut user, "own", &format!("{{create: 'shown', viewOn: 'system.profile'{options}}}"));
        let through =
            format!("{{create: 'shown', viewOn: 'c', pipeline: [{{$unionWith: 'system.profile'}}]{options}}}");
        // Commands with a duplicate field are refused for that reason.
        assert_ne!(attempt(&mut user, "own", &through).0, 0, "{through}");
    }
    assert_eq!(attempt(&mut user, "own", "{create: 'small', capped: true, size: 4096}").0, 0);
    assert_eq!(attempt(&mut user, "own", "{create: 'shown', viewOn: 'c'}").0, 0);
}

/// The checked fields are the fields that are executed, also where a field occurs twice.
#[test]
fn a_field_that_is_there_twice_is_no_way_out() {
    let mut guarded = Guarded::start();
    for database in ["own", "other"] {
        run(&mut guarded.root, database, "{insert: 'c', documents: [{_id: 1}]}");
    }
    let mut user = guarded.user("writer", "[{role: 'readWrite', db: 'own'}]");
    let reduce = |out: &str| {
        format!(
            "{{mapReduce: 'c', map: 'function() {{ emit(1, 1) }}', reduce: 'function() {{ return 1 }}', out: {out}}}"
        )
    };
    assert_eq!(attempt(&mut user, "own", &reduce("{replace: 'd', db: 'own'}")), (0, String::new()));
    for command in [
        reduce("{replace: 'd', db: 'own', db: 'other'}"),
        reduce("{replace: 'd', db: 'other', db: 'own'}"),
        reduce("{merge: 'd', db: 'own', db: 'other'}"),
        "{aggregate: 'c', pipeline: [], pipeline: [{$out: {db: 'other', coll: 'd'}}], cursor: {}}".to_owned(),
        "{aggregate: 'c', pipeline: [{$out: {db: 'own', db: 'other', coll: 'd'}}], cursor: {}}".to_owned(),
        "{aggregate: 'c', pipeline: [{$merge: {into: {db: 'own', coll: 'd', db: 'other'}}}], cursor: {}}".to_owned(),
        "{create: 'v', viewOn: 'c', viewOn: 'system.profile'}".to_owned(),
    ] {
        assert_ne!(attempt(&mut user, "own", &command).0, 0, "{command}");
    }
    assert_ne!(attempt(&mut user, "admin", "{renameCollection: 'own.c', to: 'own.e', to: 'other.e'}").0, 0);
    let names = run(&mut guarded.root, "other", "{listCollections: 1, nameOnly: true}");
    assert_eq!(crate::peer::first_batch(&names), ["{name: \"c\", type: \"collection\"}"]);
}

/// A check for an option and the command that reads its first value must agree. `currentOp` accepts any field, so a
/// duplicate is not refused there.
#[test]
fn an_option_that_is_there_twice_shows_no_more() {
    let mut guarded = Guarded::start();
    let privilege = "{resource: {db: 'own', collection: 'c'}, actions: ['find']}";
    run(&mut guarded.root, "admin", &format!("{{createRole: 'narrow', privileges: [{privilege}], roles: []}}"));
    let mut user = guarded.user("narrow", "['narrow']");
    let session = "lsid: {id: UUID('00112233-4455-4677-8899-aabbccddeeff')}, txnNumber: NumberLong(1), \
                   autocommit: false, startTransaction: true";
    run(&mut guarded.root, "own", &format!("{{find: 'hidden', {session}}}"));
    for options in ["$ownOps: true", "$ownOps: false, $ownOps: true", "$ownOps: true, $ownOps: false"] {
        let operations = shown(&run(&mut user, "admin", &format!("{{currentOp: 1, $all: true, {options}}}")));
        assert!(operations.contains("user: \"narrow\"") && !operations.contains("user: \"root\""), "{operations}");
        assert!(!operations.contains("idleSession"), "{operations}");
    }
}

/// A user who may close the cursors of one collection cannot close another collection's by naming the first.
#[test]
fn cursors_are_closed_by_what_they_read() {
    let mut guarded = Guarded::start();
    for collection in ["a", "b"] {
        run(&mut guarded.root, "own", &format!("{{insert: '{collection}', documents: [{{}}, {{}}, {{}}]}}"));
    }
    let privilege = "{resource: {db: 'own', collection: 'a'}, actions: ['killAnyCursor']}";
    run(&mut guarded.root, "admin", &format!("{{createRole: 'closer', privileges: [{privilege}], roles: []}}"));
    let mut user = guarded.user("closer", "['closer']");
    let mut open = |collection: &str| {
        let opened = run(&mut guarded.root, "own", &format!("{{find: '{collection}', batchSize: 1}}"));
        let cursor = opened.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        cursor.get("id").and_then(bunko_bson::number::as_i64_exact).expect("an id")
    };
    let (of_a, of_b) = (open("a"), open("b"));
    for named in ["a", "b"] {
        assert_refused(&mut user, "own", &format!("{{killCursors: '{named}', cursors: [NumberLong('{of_b}')]}}"));
    }
    assert_eq!(attempt(&mut user, "own", &format!("{{killCursors: 'a', cursors: [NumberLong('{of_a}')]}}")).0, 0);
    let more = |id: i64, collection: &str| format!("{{getMore: NumberLong('{id}'), collection: '{collection}'}}");
    assert_eq!(attempt(&mut guarded.root, "own", &more(of_a, "a")).0, 43);
    assert_eq!(attempt(&mut guarded.root, "own", &more(of_b, "b")).0, 0);
}

/// Changing only the collection or only the pipeline of a view could show a user data that they cannot read but the
/// view's creator could.
#[test]
fn no_half_of_a_view_is_changed_alone() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{_id: 1}]}");
    run(&mut guarded.root, "own", "{insert: 'hidden', documents: [{_id: 1}, {_id: 2, k: 'hidden'}]}");
    let pipeline = "pipeline: [{$lookup: {from: 'hidden', localField: '_id', foreignField: '_id', as: 'h'}}]";
    run(&mut guarded.root, "own", &format!("{{create: 'v', viewOn: 'c', {pipeline}}}"));
    run(&mut guarded.root, "own", "{create: 'w', viewOn: 'system.profile', pipeline: [{$project: {op: 1}}]}");
    let on = |collection: &str, actions: &str| {
        format!("{{resource: {{db: 'own', collection: '{collection}'}}, actions: [{actions}]}}")
    };
    let privileges = [on("v", "'find', 'collMod'"), on("w", "'find', 'collMod'"), on("mine", "'find', 'insert'")];
    run(
        &mut guarded.root,
        "admin",
        &format!("{{createRole: 'changer', privileges: [{}], roles: []}}", privileges.join(", ")),
    );
    let mut changer = guarded.user("changer", "['changer']");
    run(&mut changer, "own", "{insert: 'mine', documents: [{_id: 2}]}");
    assert_eq!(attempt(&mut changer, "own", "{collMod: 'v', viewOn: 'mine'}").0, 72);
    let mut reader = guarded.user("reader", "['changer', {role: 'read', db: 'own'}]");
    assert_refused(&mut reader, "own", "{find: 'system.profile'}");
    assert_eq!(attempt(&mut reader, "own", "{collMod: 'w', pipeline: []}").0, 72);
    assert_refused(&mut changer, "own", &format!("{{collMod: 'v', viewOn: 'mine', {pipeline}}}"));
    assert_eq!(attempt(&mut changer, "own", "{collMod: 'v', viewOn: 'mine', pipeline: []}").0, 0);
    assert!(!shown(&run(&mut changer, "own", "{find: 'v'}")).contains("hidden"));
}
