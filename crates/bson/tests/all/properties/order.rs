//! The canonical order is a total order.

use crate::properties::values::{neighbours, value};
use bunko_bson::{Value, order};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Ordering;

fn compare(a: &Value, b: &Value) -> Ordering {
    order::compare(a.as_ref(), b.as_ref())
}

proptest! {
    #[test]
    fn comparison_is_a_total_order(values in prop_oneof![vec(value(), 3..9), neighbours(3..9)]) {
        for a in &values {
            prop_assert_eq!(compare(a, a), Ordering::Equal, "{:?} with itself", a);
            for b in &values {
                prop_assert_eq!(compare(a, b), compare(b, a).reverse(), "{:?} and {:?}", a, b);
                prop_assert_eq!(order::equal(a.as_ref(), b.as_ref()), compare(a, b).is_eq());
                for c in &values {
                    if compare(a, b).is_le() && compare(b, c).is_le() {
                        prop_assert!(compare(a, c).is_le(), "{:?}, {:?} and {:?}", a, b, c);
                    }
                }
            }
        }
    }

    #[test]
    fn brackets_come_first(a in value(), b in value()) {
        let brackets = order::rank(a.as_ref().kind()).cmp(&order::rank(b.as_ref().kind()));
        if brackets.is_ne() {
            prop_assert_eq!(compare(&a, &b), brackets);
        }
    }
}
