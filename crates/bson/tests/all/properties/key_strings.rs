//! The bytes of keys order as their values do, in every position and direction, and decode to equal values.

use crate::properties::values::{neighbours, number, value};
use bunko_bson::key_string::{Direction, append, append_bracket_end, append_bracket_start, decode};
use bunko_bson::{Type, Value, order};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

fn directed(order: Ordering, direction: Direction) -> Ordering {
    if direction == Direction::Descending { order.reverse() } else { order }
}

fn key(values: &[&Value], directions: &[Direction]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, direction) in values.iter().zip(directions) {
        append(&mut key, value.as_ref(), *direction);
    }
    key
}

fn check_pairs(values: &[Value]) -> Result<(), TestCaseError> {
    for direction in DIRECTIONS {
        let keys: Vec<_> = values.iter().map(|value| key(&[value], &[direction])).collect();
        for (a, key_a) in values.iter().zip(&keys) {
            for (b, key_b) in values.iter().zip(&keys) {
                let expected = directed(order::compare(a.as_ref(), b.as_ref()), direction);
                prop_assert_eq!(key_a.cmp(key_b), expected, "{:?} and {:?}, {:?}", a, b, direction);
                let is_proper_prefix = key_a != key_b && key_b.starts_with(key_a);
                prop_assert!(!is_proper_prefix, "the key of {:?} begins that of {:?}", a, b);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn keys_order_as_values(values in vec(value(), 2..10)) {
        check_pairs(&values)?;
    }

    #[test]
    fn keys_order_as_numbers(values in prop_oneof![vec(number(), 2..16), neighbours(2..16)]) {
        check_pairs(&values)?;
    }

    #[test]
    fn compound_keys_order_by_their_first_difference(
        values in vec((value(), number(), value()), 2..6),
        flips in any::<[bool; 3]>(),
    ) {
        let directions = flips.map(|flip| DIRECTIONS[usize::from(flip)]);
        for a in &values {
            for b in &values {
                let (first, second) = ([&a.0, &a.1, &a.2], [&b.0, &b.1, &b.2]);
                let expected = (0..3)
                    .map(|i| directed(order::compare(first[i].as_ref(), second[i].as_ref()), directions[i]))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal);
                prop_assert_eq!(key(&first, &directions).cmp(&key(&second, &directions)), expected);
            }
        }
    }

    #[test]
    fn keys_decode_to_equal_values(values in vec(value(), 1..4), flips in any::<[bool; 3]>()) {
        let directions = &flips.map(|flip| DIRECTIONS[usize::from(flip)])[..values.len()];
        let mut key = key(&values.iter().collect::<Vec<_>>(), directions);
        key.extend_from_slice(b"record id");
        let decoded = decode(&key, directions).expect("a key of ours");
        prop_assert_eq!(decoded.len(), values.len());
        for (value, decoded) in values.iter().zip(&decoded) {
            prop_assert!(order::equal(value.as_ref(), decoded.as_ref()), "{:?} became {:?}", value, decoded);
            let (kind, back) = (value.as_ref().kind(), decoded.as_ref().kind());
            let keeps_type = kind == back || value.as_ref().is_number() || kind == Type::Symbol;
            prop_assert!(keeps_type, "{:?} became {:?}", value, decoded);
        }
    }

    #[test]
    fn brackets_enclose_their_values(value in value(), other in value()) {
        for direction in DIRECTIONS {
            let (mut start, mut end) = (Vec::new(), Vec::new());
            let rank = order::rank(value.as_ref().kind());
            append_bracket_start(&mut start, rank, direction);
            append_bracket_end(&mut end, rank, direction);
            let inside = |key: Vec<u8>| start < key && key < end;
            prop_assert!(inside(key(&[&value], &[direction])));
            let same_bracket = order::rank(other.as_ref().kind()) == rank;
            prop_assert_eq!(inside(key(&[&other], &[direction])), same_bracket);
        }
    }

    #[test]
    fn decoding_never_panics(bytes in vec(any::<u8>(), 0..40)) {
        let _ = decode(&bytes, &[Direction::Ascending, Direction::Descending]);
    }
}
