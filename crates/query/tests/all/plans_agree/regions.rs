//! Random regions beside conditions on the other fields of geospatial indexes, some of which hold arrays.

use crate::plans_agree::scenes::{Find, Scene, Sort};
use proptest::collection::vec;
use proptest::prelude::*;

/// The indexes of a scene of regions; each scene has some of them.
const OF_REGIONS: [&str; 7] = [
    "{s: 1, h: '2dsphere'}",
    "{h: '2dsphere', s: -1, 'a.b': 1}",
    "{s: -1, h: '2dsphere', 'a.b': 1}",
    "{'a.b': 1, g: '2dsphere'}",
    "{g: '2d', s: 1}",
    "{g: '2d', 'a.b': -1, s: 1}",
    "{s: 1, t: 1}",
];

/// A condition on a field that is not geospatial.
fn beside() -> impl Strategy<Value = String> {
    (prop::sample::select(vec!["s", "s", "a.b", "a.b", "t"]), 0..4_i32, 0..11_u8).prop_map(|(path, value, form)| {
        match form {
            0..=2 => format!("{{'{path}': {value}}}"),
            3 => format!("{{'{path}': {{$in: [{value}, null]}}}}"),
            4 => format!("{{'{path}': {{$gte: {value}, $lt: {}}}}}", value + 2),
            5 => format!("{{$and: [{{'{path}': {{$gt: {value}}}}}, {{'{path}': {{$lt: {value}}}}}]}}"),
            6 => format!("{{'{path}': {{$ne: {value}}}}}"),
            7 => format!("{{'{path}': {{$exists: {}}}}}", value % 2 == 0),
            8 => format!("{{$expr: {{$eq: ['${path}', {value}]}}}}"),
            9 => format!("{{a: {{$elemMatch: {{b: {value}}}}}}}"),
            _ => format!("{{'{path}': null}}"),
        }
    })
}

fn region() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{g: {$geoWithin: {$box: [[0, 0], [3, 3]]}}}",
        "{g: {$geoWithin: {$center: [[2, 2], 1.5]}}}",
        "{g: {$geoWithin: {$centerSphere: [[2, 2], 0.03]}}}",
        "{h: {$geoWithin: {$centerSphere: [[2, 2], 0.05]}}}",
        "{h: {$geoIntersects: {$geometry: {type: 'Polygon', coordinates: [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}}}}",
        "{h: {$geoIntersects: {$geometry: {type: 'Point', coordinates: [1, 2]}}}}",
    ])
}

/// Collections with geospatial indexes of several fields, and regions beside conditions on these.
pub fn scene_of_regions() -> impl Strategy<Value = Scene> {
    let filter = prop_oneof![
        2 => (region(), beside()).prop_map(|(region, beside)| format!("{{$and: [{region}, {beside}]}}")),
        2 => (region(), beside(), beside())
            .prop_map(|(region, one, other)| format!("{{$and: [{region}, {one}, {other}]}}")),
        1 => (region(), beside(), beside())
            .prop_map(|(region, one, other)| format!("{{$and: [{region}, {{$or: [{one}, {other}]}}]}}")),
        1 => (region(), beside(), beside())
            .prop_map(|(region, one, other)| format!("{{$or: [{{$and: [{region}, {one}]}}, {other}]}}")),
        1 => beside(),
    ];
    let sort = prop_oneof![3 => Just(Sort::None), 1 => Just(Sort::By("{s: 1, t: -1}".to_owned()))];
    let find = (filter, sort, 0..2_u8, prop::option::weighted(0.3, 1..5_u8)).prop_map(|(filter, sort, skip, limit)| {
        Find { filter, sort, skip, limit, is_collated: false, is_thorough: false }
    });
    let plain = |name: &'static str| {
        prop_oneof![
            1 => Just(String::new()),
            1 => Just(format!("{name}: null")),
            5 => (0..4_i32).prop_map(move |value| format!("{name}: {value}")),
            2 => vec(0..4_i32, 0..3).prop_map(move |values| format!("{name}: {values:?}")),
        ]
    };
    let nested = prop_oneof![
        3 => (0..4_i32).prop_map(|b| format!("a: {{b: {b}}}")),
        2 => (0..4_i32, 0..4_i32).prop_map(|(one, other)| format!("a: [{{b: {one}}}, {{b: {other}}}]")),
        1 => (0..4_i32).prop_map(|b| format!("a: [{{b: []}}, {b}]")),
    ];
    let place = |name: &'static str| {
        prop_oneof![
            1 => Just(String::new()),
            8 => (0..6_i32, 0..6_i32).prop_map(move |(x, y)| format!("{name}: [{x}, {y}]")),
        ]
    };
    let shape = prop_oneof![
        3 => place("h"),
        1 => (0..5_i32, 0..5_i32).prop_map(|(x, y)| {
            format!("h: {{type: 'LineString', coordinates: [[{x}, {y}], [{}, {}]]}}", x + 1, y + 2)
        }),
    ];
    let document = (plain("s"), plain("t"), nested, place("g"), shape).prop_map(|(s, t, a, g, h)| {
        let fields: Vec<_> = [s, t, a, g, h].into_iter().filter(|field| !field.is_empty()).collect();
        format!("{{{}}}", fields.join(", "))
    });
    let indexes = prop::sample::subsequence(OF_REGIONS.map(str::to_owned).to_vec(), 2..5);
    (vec(document, 5..25), indexes, 0..20_usize, vec(find, 2..7)).prop_map(|(documents, indexes, early, finds)| {
        let options = vec!["{}".to_owned(); indexes.len()];
        Scene { documents, indexes, options, early, finds }
    })
}
