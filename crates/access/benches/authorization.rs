//! Measures the processor time of one privilege check: `cargo bench -p bunko-access`. Fails above 0.1 us.

#![forbid(unsafe_code)]

use bunko_access::{Action, ActionSet, Authorization, BuiltinRole, Privilege, Resource};
use std::hint::black_box;

const CHECKS: u32 = 5_000_000;
const NANOSECONDS_MAX: f64 = 100.0;
/// Collections on which the narrow user has a privilege of its own.
const COLLECTIONS: usize = 1_000;

/// Processor time of this thread, in nanoseconds. Other programs on the machine do not affect it.
/// Source: Linux, Documentation/scheduler/sched-stats.
fn processor_ns() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel with scheduler statistics");
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn of_roles(roles: &[(&str, &str)]) -> Authorization {
    let privileges = roles.iter().flat_map(|(name, database)| {
        BuiltinRole::find(name, database).unwrap_or_else(|| panic!("there is no role {name}")).privileges(database)
    });
    Authorization::new(&privileges.collect::<Vec<_>>())
}

fn main() {
    let narrow: Vec<_> = (0..COLLECTIONS)
        .map(|number| Privilege {
            resource: Resource::Collection("shop".into(), format!("orders{number}")),
            actions: ActionSet::of(&[Action::Find]),
        })
        .collect();
    let cases = [
        ("readWrite on the database", of_roles(&[("readWrite", "shop")]), "orders", true),
        ("root", of_roles(&[("root", "admin")]), "orders", true),
        ("readWrite on ten databases", of_many(), "orders", true),
        ("find on a thousand collections", Authorization::new(&narrow), "orders777", true),
        ("nothing that helps", of_roles(&[("readWrite", "blog"), ("clusterMonitor", "admin")]), "orders", false),
    ];
    for (name, authorization, collection, expected) in &cases {
        let began = processor_ns();
        for _ in 0..CHECKS {
            let is_allowed = authorization.on_collection(black_box("shop"), black_box(collection), Action::Find);
            assert_eq!(black_box(is_allowed), *expected, "{name}");
        }
        let each = (processor_ns() - began) as f64 / f64::from(CHECKS);
        println!("{name}: {each:.1} ns for a check");
        assert!(each < NANOSECONDS_MAX, "{name}: {each:.1} ns");
    }
}

fn of_many() -> Authorization {
    let names: Vec<_> = (0..9).map(|number| format!("db{number}")).chain(["shop".to_owned()]).collect();
    let roles: Vec<_> = names.iter().map(|name| ("readWrite", name.as_str())).collect();
    of_roles(&roles)
}
