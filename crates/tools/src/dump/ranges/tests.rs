use super::*;
use bunko_bson::Decimal128;
use proptest::prelude::*;

/// Whether a server would find the `_id` with the filter: comparisons within a type's bracket only.
fn matches(filter: &DocumentBuf, id: ValueRef<'_>) -> bool {
    let Some(first) = filter.as_ref().first() else { return true };
    if let ("$or", ValueRef::Array(conditions)) = (first.name, first.value) {
        return conditions.iter().filter_map(ValueRef::as_document).any(|condition| matches(&condition.to_owned(), id));
    }
    let nan = |value: ValueRef<'_>| is_nan(&value.to_value());
    let comparable = |operand: ValueRef<'_>| rank(operand.kind()) == rank(id.kind()) && nan(operand) == nan(id);
    match first.value {
        ValueRef::Document(bounds) if bounds.first().is_some_and(|bound| bound.name.starts_with('$')) => {
            bounds.iter().all(|bound| match bound.name {
                "$eq" => compare(bound.value, id).is_eq(),
                "$gt" => comparable(bound.value) && compare(id, bound.value).is_gt(),
                "$gte" => comparable(bound.value) && compare(id, bound.value).is_ge(),
                "$lt" => comparable(bound.value) && compare(id, bound.value).is_lt(),
                "$type" => bound.value.as_str() == Some(id.kind().alias()),
                other => panic!("{other}"),
            })
        }
        value => compare(value, id).is_eq(),
    }
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::MinKey),
        Just(Value::Null),
        Just(Value::Undefined),
        Just(Value::Double(f64::NAN)),
        Just(Value::Double(f64::NEG_INFINITY)),
        (-3..3_i32).prop_map(Value::Int32),
        (-3..3_i64).prop_map(Value::Int64),
        (-3..3_i32).prop_map(|number| Value::Double(f64::from(number) / 2.0)),
        Just(Value::Decimal128(Decimal128([0; 16]))),
        "[ab]{0,2}".prop_map(Value::String),
        "[ab]{0,2}".prop_map(Value::Symbol),
        (0..3).prop_map(|number| Value::Document(DocumentBuf::new().with("a", number))),
        prop::collection::vec(0..2_u8, 0..3).prop_map(|bytes| Value::Binary { subtype: 4, bytes }),
        (0..3_u8).prop_map(|byte| Value::ObjectId(ObjectId([byte; 12]))),
        any::<bool>().prop_map(Value::Boolean),
        (-1..2_i64).prop_map(Value::DateTime),
        (0..2_u32).prop_map(|seconds| Value::Timestamp(Timestamp { seconds, increment: 1 })),
        "[ab]".prop_map(Value::JavaScript),
        Just(Value::MaxKey),
    ]
}

proptest! {
    /// For any boundaries, every `_id` is in exactly one range, also if one of the ranges is resumed from any place.
    #[test]
    fn every_id_is_in_exactly_one_range(boundaries in prop::collection::vec(id(), 1..5), ids in prop::collection::vec(id(), 1..40), last in id()) {
        let mut boundaries = boundaries;
        boundaries.sort_by(|left, right| compare(left.as_ref(), right.as_ref()));
        boundaries.dedup_by(|left, right| compare(left.as_ref(), right.as_ref()).is_eq());
        let ranges = Range::whole().cut(&boundaries);
        let is_in = |range: &Range, id: &Value| range.filter().is_some_and(|filter| matches(&filter, id.as_ref()));
        for id in &ids {
            let count = ranges.iter().filter(|range| is_in(range, id)).count();
            prop_assert_eq!(count, 1, "{:?} among {:?}", id, boundaries);
            let (smallest, largest) = (&boundaries[0], &boundaries[boundaries.len() - 1]);
            let known = Range::from_to(smallest.clone(), largest.clone());
            let expected = compare(id.as_ref(), smallest.as_ref()).is_ge() && rank(id.as_ref().kind()) <= rank(largest.as_ref().kind());
            prop_assert_eq!(is_in(&known, id), expected, "{:?} in {:?}", id, known);
            for range in ranges.iter().filter(|range| is_in(range, &last)) {
                let expected = is_in(range, id) && compare(id.as_ref(), last.as_ref()).is_gt();
                prop_assert_eq!(is_in(&range.after(last.clone()), id), expected, "{:?} after {:?} in {:?}", id, last, range);
            }
        }
    }
}

#[test]
fn filters_are_as_simple_as_can_be() {
    let text = |range: &Range| range.filter().map(|filter| format!("{filter:?}"));
    assert_eq!(text(&Range::whole()), Some("{}".into()));
    let ranges = Range::from_to(Value::Int32(1), Value::Int32(30)).cut(&[Value::Int64(10), Value::Int64(20)]);
    assert_eq!(text(&ranges[0]), Some(r#"{"_id": Document({"$gte": Int32(1), "$lt": Int64(10)})}"#.into()));
    assert_eq!(text(&ranges[2]), Some(r#"{"_id": Document({"$gte": Int64(20)})}"#.into()));
    assert_eq!(text(&ranges[1]), Some(r#"{"_id": Document({"$gte": Int64(10), "$lt": Int64(20)})}"#.into()));
    let last = Range::whole().after(Value::MaxKey);
    assert_eq!(text(&last), None);
}

#[test]
fn boundaries_lie_between_what_they_divide() {
    let number = |value: &Value| if let Value::Int64(number) = value { *number } else { panic!("{value:?}") };
    let cut = interpolate(ValueRef::Int32(0), ValueRef::Int64(400), 4);
    assert_eq!(cut.iter().map(number).collect::<Vec<_>>(), [100, 200, 300]);
    let cut = interpolate(ValueRef::Int64(i64::MIN), ValueRef::Int64(i64::MAX), 2);
    assert_eq!(cut.iter().map(number).collect::<Vec<_>>(), [-1]);
    let (low, high) = (ObjectId([0; 12]), ObjectId([0xff; 12]));
    let cut = interpolate(ValueRef::ObjectId(low), ValueRef::ObjectId(high), 2);
    assert!(matches!(cut[..], [Value::ObjectId(ObjectId([0x7f, ..]))]), "{cut:?}");
    assert!(interpolate(ValueRef::Int32(1), ValueRef::Int32(2), 4).is_empty());
    assert!(interpolate(ValueRef::String("a"), ValueRef::String("z"), 4).is_empty());
    assert!(interpolate(ValueRef::Int32(1), ValueRef::String("z"), 4).is_empty());
}

#[test]
fn quantiles_are_distinct_and_rising() {
    let sample = |count: i32| (0..count).rev().map(Value::Int32).collect::<Vec<_>>();
    let cut: Vec<_> = quantiles(sample(40), 4).iter().map(|value| format!("{value:?}")).collect();
    assert_eq!(cut, ["Int32(10)", "Int32(20)", "Int32(30)"]);
    assert!(quantiles(vec![Value::Int32(1); 40], 2).is_empty());
}
