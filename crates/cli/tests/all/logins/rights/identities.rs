//! A collection that is named by its UUID can be read by users who may read it and may use UUIDs.

use super::{Guarded, assert_refused, attempt};
use crate::logins::run;

/// The UUID of a collection as a shell writes it.
fn uuid(guarded: &mut Guarded, database: &str, collection: &str) -> String {
    let listed = run(&mut guarded.root, database, &format!("{{listCollections: 1, filter: {{name: '{collection}'}}}}"));
    let shown = super::shown(&listed);
    let start = shown.find("UUID(").expect("a collection has one");
    shown[start..=start + shown[start..].find(')').expect("closed")].to_owned()
}

#[test]
fn a_name_by_identity_opens_nothing() {
    let mut guarded = Guarded::start();
    for (database, collection) in [("own", "c"), ("own", "hidden"), ("other", "c")] {
        run(&mut guarded.root, database, &format!("{{insert: '{collection}', documents: [{{}}]}}"));
    }
    let of_collection = "{resource: {db: 'own', collection: 'c'}, actions: ['find', 'listIndexes']}";
    let by_uuid = "{resource: {cluster: true}, actions: ['useUUID']}";
    for (role, privileges) in [("narrow", of_collection.to_owned()), ("named", format!("{of_collection}, {by_uuid}"))] {
        run(&mut guarded.root, "admin", &format!("{{createRole: '{role}', privileges: [{privileges}], roles: []}}"));
    }
    let seen = uuid(&mut guarded, "own", "c");
    let hidden = uuid(&mut guarded, "own", "hidden");
    let elsewhere = uuid(&mut guarded, "other", "c");
    let reads = |uuid: &str| {
        [
            format!("{{find: {uuid}}}"),
            format!("{{count: {uuid}}}"),
            format!("{{distinct: {uuid}, key: '_id'}}"),
            format!("{{listIndexes: {uuid}}}"),
        ]
    };
    let mut reader = guarded.user("reader", "[{role: 'read', db: 'own'}]");
    let mut narrow = guarded.user("narrow", "['narrow']");
    let mut named = guarded.user("named", "['named']");
    for read in [reads(&seen), reads(&hidden), reads(&elsewhere)].concat() {
        assert_refused(&mut reader, "own", &read);
        assert_refused(&mut narrow, "own", &read);
    }
    for read in reads(&seen) {
        assert_eq!(attempt(&mut named, "own", &read), (0, String::new()), "{read}");
    }
    for read in [reads(&hidden), reads(&elsewhere)].concat() {
        assert_refused(&mut named, "own", &read);
    }
}
