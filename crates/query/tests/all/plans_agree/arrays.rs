//! Random collections whose indexes lead to arrays, with sorts by their fields and conditions that leave some of their keys
//! out; also on positions in arrays.

use crate::plans_agree::scenes::{Find, Scene, Sort};
use proptest::collection::vec;
use proptest::prelude::*;

/// Documents with arrays of numbers and of documents, and with fields named by digits.
fn document() -> impl Strategy<Value = String> {
    (vec(0..6_i32, 5), 0..16_u8).prop_map(|(numbers, form)| {
        let [one, two, three, four, five] = numbers[..] else { unreachable!("five numbers") };
        match form {
            0 => format!("{{a: [{one}, {two}], s: {three}}}"),
            1 => format!("{{a: {one}, s: {two}}}"),
            2 => format!("{{a: [{{b: {one}, c: {two}}}, {{b: {three}, c: {four}}}], s: {five}}}"),
            3 => format!("{{a: {{b: [{one}, {two}], c: {three}}}, s: {four}}}"),
            4 => format!("{{a: {{'0': {one}, b: {two}}}, s: {three}}}"),
            5 => format!("{{a: [[{one}, {two}], {three}], s: {four}}}"),
            6 => format!("{{a: [{one}, {{b: {two}}}], s: {three}}}"),
            7 => format!("{{a: [{{b: [{one}, {two}]}}, {{b: {three}}}], s: {four}}}"),
            8 => format!("{{a: {{'0': {{b: {one}}}}}, s: {two}}}"),
            9 => format!("{{a: ['x{one}', 'y{two}', null], s: {three}}}"),
            10 => format!("{{a: [{{'1': {one}}}], s: {two}}}"),
            11 => format!("{{a: [[{{b: {one}}}, {{b: {two}}}], {three}], s: {four}}}"),
            12 => format!("{{a: [], s: {one}}}"),
            _ => format!("{{a: [{{b: {one}, c: {}}}, {{b: {two}, c: {}}}], s: {five}}}", three % 3, four % 3),
        }
    })
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "a", "a.b", "a.b", "a.c", "a.0", "a.0", "a.1", "a.0.b", "s"])
}

fn condition() -> impl Strategy<Value = String> {
    let forms = vec![
        "{$gte: 2}",
        "{$lte: 2}",
        "{$in: [1, 4]}",
        "3",
        "{$ne: 2}",
        "{$not: {$gt: 2}}",
        "{$nin: [1, 2]}",
        "null",
        "{$ne: null}",
        "{$in: [null, 2]}",
        "{$exists: true}",
        "{$exists: false}",
        "{$mod: [2, 1]}",
        "/x[1-3]/",
        "{$in: [/3/, 2]}",
        "{$in: [/3/, null]}",
        "{$type: 'number'}",
        "{$elemMatch: {$gt: 3}}",
        "[1, 2]",
    ];
    (path(), prop::sample::select(forms)).prop_map(|(path, condition)| format!("{{'{path}': {condition}}}"))
}

fn filter() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just("{}".to_owned()),
        6 => condition(),
        2 => (condition(), condition()).prop_map(|(one, other)| format!("{{$and: [{one}, {other}]}}")),
        1 => (condition(), condition()).prop_map(|(one, other)| format!("{{$or: [{one}, {other}]}}")),
        1 => condition().prop_map(|one| format!("{{$nor: [{one}]}}")),
        1 => (path(), 0..5_i32, prop::sample::select(vec!["$gte", "$lt", "$lte", "$eq"]))
            .prop_map(|(path, number, comparison)| format!("{{$expr: {{{comparison}: ['${path}', {number}]}}}}")),
        1 => (0..5_i32).prop_map(|number| format!("{{a: {{$elemMatch: {{'0': {number}}}}}}}")),
    ]
}

/// A condition on one field of the elements, and a sort by the other.
fn sort_beside_condition() -> impl Strategy<Value = (String, Sort)> {
    (0..3_i32, prop::sample::select(vec!["{'a.b': 1}", "{'a.b': -1}", "{'a.b': 1, 'a.c': 1}"]))
        .prop_map(|(number, sort)| (format!("{{'a.c': {number}}}"), Sort::By(sort.to_owned())))
}

fn find() -> impl Strategy<Value = Find> {
    let sort = (prop::sample::select(vec!["{P: 1}", "{P: -1}", "{P: 1, s: -1}", "{s: 1, P: 1}"]), path())
        .prop_map(|(pattern, path)| pattern.replace('P', &format!("'{path}'")))
        .prop_filter("a path is given once", |pattern| pattern.matches('s').count() < 2);
    let sort = prop_oneof![1 => Just(Sort::None), 4 => sort.prop_map(Sort::By)];
    let asked = prop_oneof![5 => (filter(), sort), 1 => sort_beside_condition()];
    (asked, prop::option::weighted(0.3, 1..5_u8), prop::bool::weighted(0.1)).prop_map(
        |((filter, sort), limit, is_thorough)| Find { filter, sort, skip: 0, limit, is_collated: false, is_thorough },
    )
}

/// Collections of which most indexes are multikey.
pub fn scene_of_arrays() -> impl Strategy<Value = Scene> {
    let patterns = [
        "{a: 1}",
        "{'a.b': 1}",
        "{'a.0': 1}",
        "{'a.0.b': -1}",
        "{'a.1': 1}",
        "{'a.b': 1, 'a.c': 1}",
        "{a: 1, s: -1}",
        "{s: 1, a: 1}",
        "{s: 1, 'a.0': 1}",
    ];
    let indexes = prop::sample::subsequence(patterns.map(str::to_owned).to_vec(), 1..5);
    (vec(document(), 4..20), indexes, 0..20_usize, vec(find(), 4..12)).prop_map(|(documents, indexes, early, finds)| {
        let options = vec!["{}".to_owned(); indexes.len()];
        Scene { documents, indexes, options, early, finds }
    })
}
