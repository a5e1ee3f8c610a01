//! Random `$or`s beside and inside other conditions, with compound indexes for their branches.

use crate::plans_agree::scenes::{Find, Scene, Sort};
use proptest::collection::vec;
use proptest::prelude::*;

/// The indexes of a scene of alternatives; each scene has some of them.
const OF_ALTERNATIVES: [&str; 6] =
    ["{s: 1, t: 1}", "{s: 1, 'a.b': -1}", "{s: 1, d: 1, t: 1}", "{t: 1, d: 1}", "{d: 1, t: 1}", "{'a.b': 1, t: 1}"];

/// A condition that some of these indexes serve.
fn served() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["t", "a.b", "d", "s"]);
    (path, 0..4_i32, 0..9_u8).prop_map(|(path, value, form)| match form {
        0..=3 => format!("{{'{path}': {value}}}"),
        4 => format!("{{'{path}': {{$in: [{value}, {}]}}}}", value + 1),
        5 => format!("{{'{path}': {{$gte: {value}, $lt: {}}}}}", value + 2),
        6 => format!("{{'{path}': {{$ne: {value}}}}}"),
        7 => format!("{{$nor: [{{'{path}': {value}}}, {{t: {{$gt: 2}}}}]}}"),
        _ => format!("{{'{path}': null}}"),
    })
}

/// An `$or`, perhaps with others inside its branches.
fn alternatives() -> impl Strategy<Value = String> {
    let or = |parts: Vec<String>| format!("{{$or: [{}]}}", parts.join(", "));
    let branch = served().prop_recursive(2, 8, 3, move |inner| {
        (served(), vec(inner, 2..4)).prop_map(move |(beside, parts)| format!("{{$and: [{beside}, {}]}}", or(parts)))
    });
    vec(branch, 2..4).prop_map(or)
}

/// Collections with compound indexes for the branches of `$or`s, and `$or`s beside and inside other conditions.
pub fn scene_of_alternatives() -> impl Strategy<Value = Scene> {
    let indexes = prop::sample::subsequence(OF_ALTERNATIVES.map(str::to_owned).to_vec(), 2..5);
    let filter = prop_oneof![
        2 => (served(), alternatives()).prop_map(|(beside, or)| format!("{{$and: [{beside}, {or}]}}")),
        1 => (0..3_i32, alternatives()).prop_map(|(s, or)| format!("{{$and: [{{s: {s}}}, {or}]}}")),
        1 => (0..3_i32, served(), alternatives())
            .prop_map(|(s, beside, or)| format!("{{$and: [{{s: {s}}}, {beside}, {or}]}}")),
        1 => (alternatives(), alternatives()).prop_map(|(one, other)| format!("{{$and: [{one}, {other}]}}")),
        1 => alternatives(),
    ];
    let sorts = prop::sample::select(vec!["{t: 1}", "{t: -1}", "{d: 1, t: 1}", "{'a.b': 1}"]);
    let sort = prop_oneof![1 => Just(Sort::None), 2 => sorts.prop_map(|sort| Sort::By(sort.to_owned()))];
    let find = (filter, sort, 0..3_u8, prop::option::weighted(0.5, 1..5_u8)).prop_map(|(filter, sort, skip, limit)| {
        Find { filter, sort, skip, limit, is_collated: false, is_thorough: false }
    });
    let field = |name: &'static str| {
        let several = vec(0..4_i32, 0..3).prop_map(move |values| format!("{name}: {values:?}"));
        let one = (0..4_i32).prop_map(move |value| format!("{name}: {value}"));
        prop_oneof![1 => Just(String::new()), 8 => one, 1 => several]
    };
    let nested = prop_oneof![
        4 => (0..4_i32).prop_map(|b| format!("a: {{b: {b}}}")),
        1 => (0..4_i32, 0..4_i32).prop_map(|(one, other)| format!("a: [{{b: {one}}}, {{b: {other}}}]")),
    ];
    // In half of the collections no field has arrays, so that their indexes give orders.
    let document = (field("s"), field("t"), field("d"), nested).prop_map(|(s, t, d, a)| {
        let fields: Vec<_> = [s, t, d, a].into_iter().filter(|field| !field.is_empty()).collect();
        format!("{{{}}}", fields.join(", "))
    });
    let documents = (vec(document, 5..20), prop::bool::ANY).prop_map(|(mut documents, has_arrays)| {
        documents.retain(|document| has_arrays || !document.contains('['));
        documents
    });
    (documents, indexes, 0..20_usize, vec(find, 2..7)).prop_map(|(documents, indexes, early, finds)| {
        let options = vec!["{}".to_owned(); indexes.len()];
        Scene { documents, indexes, options, early, finds }
    })
}
