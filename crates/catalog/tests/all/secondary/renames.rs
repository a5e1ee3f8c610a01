//! A rename that drops its target, on a secondary with readers.

use super::{Member, end, ship};
use bunko_catalog::{CreateOptions, Namespace, RenameTarget};
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_testkit::random::Random;
use std::sync::atomic::{AtomicBool, Ordering};

const RENAMES: usize = 300;

#[test]
fn a_name_that_a_rename_takes_over_has_a_collection_at_every_moment() {
    let (primary, secondary) = (Member::new(&ENGINES[0]), Member::new(&ENGINES[0]));
    primary.become_primary();
    let operation = OperationContext::unlimited();
    let [from, to] = ["from", "to"].map(|name| Namespace::new("db", name).expect("valid"));
    let create = |name: &Namespace| primary.catalog.create(name, CreateOptions::default(), &*operation).map(drop);
    create(&to).expect("created");
    let apply = || {
        ship(&primary, &secondary, u64::MAX, &mut Random(1));
        secondary.apply(end(primary.store())).expect("applied");
    };
    apply();
    for _ in 0..RENAMES {
        create(&from).expect("created");
        primary.catalog.rename(&from, &to, RenameTarget::Drop, &*operation).expect("renamed");
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert!(secondary.catalog.collection(&to).is_some(), "a promise is broken: the name is gone");
            }
        });
        apply();
        is_over.store(true, Ordering::Relaxed);
        reader.join().expect("it finds the name");
    });
}
