//! A grinder: every expression, accumulator, filter, update operator and stage of the tables with growing inputs. Time
//! and memory grow about as fast as the input, long commands end by `maxTimeMS`, and a bystander's pings are answered
//! meanwhile.
//!
//! `BUNKO_GRINDER=full` grinds every shape of input instead of the first ones of each entry.

mod input;
mod mill;
mod names;
mod shapes;

use crate::alone;
use mill::Mill;
use names::Table;
use shapes::{SHAPES, general};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum time that 95 of 100 pings of a bystander may take.
const PATIENCE: Duration = Duration::from_millis(50);
/// Shapes of each entry that are ground by default.
const SHAPES_MAX: usize = 2;

/// Entries that need more than documents: an index, a stage around or before them, buckets of a time series. And
/// `$where`, whose text has no size with which its time would grow.
const NOT_ALONE: &[(Table, &[&str])] = &[
    (Table::Expressions, &["$meta"]),
    (Table::Filters, &["$geoNear", "$near", "$nearSphere", "$text", "$where"]),
    (
        Table::Stages,
        &[
            "$_internalUnpackBucket",
            "$covariancePop",
            "$covarianceSamp",
            "$denseRank",
            "$derivative",
            "$documentNumber",
            "$expMovingAvg",
            "$geoNear",
            "$integral",
            "$linearFill",
            "$locf",
            "$minMaxScaler",
            "$rank",
            "$shift",
        ],
    ),
];

#[test]
fn time_and_memory_grow_as_the_input_does() {
    let _alone = alone();
    let mut mill = Mill::start();
    let (mut ground, mut idle, mut complaints) = (0, Vec::new(), Vec::new());
    let shapes_max =
        if std::env::var("BUNKO_GRINDER").is_ok_and(|said| said == "full") { usize::MAX } else { SHAPES_MAX };
    for table in Table::ALL {
        for name in table.names() {
            let own = SHAPES.iter().filter(|(of, entry, _)| *of == table && *entry == name);
            let mut shapes = own.flat_map(|(_, _, shapes)| *shapes).chain(general(table));
            let mut taken = 0;
            while let Some(shape) = shapes.next().filter(|_| taken < shapes_max) {
                if !mill.takes(table, &name, shape) {
                    continue;
                }
                let complaint = mill.grind(table, &name, shape);
                // Printed at once, so that a complaint is visible before the end.
                if let Some(complaint) = &complaint {
                    eprintln!("{complaint}");
                }
                complaints.extend(complaint);
                taken += 1;
            }
            let needs_more = NOT_ALONE.iter().any(|(of, names)| *of == table && names.contains(&name.as_str()));
            if taken == 0 && !needs_more {
                idle.push(format!("{table:?} {name}"));
            }
            ground += taken;
        }
    }
    let pings = mill.stop();
    println!("{ground} shapes ground; the bystander's pings: {pings}");
    assert!(idle.is_empty(), "no input is known that these take, `shapes.rs` needs one: {idle:?}");
    assert!(complaints.is_empty(), "{} of {ground}:\n{}", complaints.len(), complaints.join("\n"));
    pings.assert_quick(PATIENCE, PATIENCE);
}

#[test]
fn the_shapes_are_of_entries_that_exist() {
    for table in Table::ALL {
        let names = table.names();
        let of_table = SHAPES.iter().filter(|(of, ..)| *of == table).map(|(_, name, _)| *name);
        let unknown: BTreeSet<_> = of_table.filter(|name| !names.contains(*name)).collect();
        assert!(unknown.is_empty(), "{table:?}: {unknown:?}");
    }
}
