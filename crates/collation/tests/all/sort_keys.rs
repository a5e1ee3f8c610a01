//! Sort keys, and key strings made of them, have the same order as their strings.

use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, StringOrder, ValueRef};
use proptest::prelude::*;

fn collation(locale: &str, strength: i32, flags: u8) -> StringOrder {
    let flag = |bit: u8| flags & 1 << bit != 0;
    let mut document = DocumentBuf::new()
        .with("locale", locale)
        .with("strength", strength)
        .with("caseLevel", flag(0))
        .with("numericOrdering", flag(1))
        .with("alternate", if flag(2) { "shifted" } else { "non-ignorable" })
        .with("maxVariable", if flag(3) { "space" } else { "punct" });
    if flag(4) && (strength > 2 || flag(0)) {
        document.append("caseFirst", "upper");
    }
    bunko_collation::parse(document.as_ref()).expect("a collation of ours")
}

fn key(strings: &StringOrder, text: &str, direction: Direction) -> Vec<u8> {
    let mut key = Vec::new();
    strings.append_key(&mut key, ValueRef::String(text), direction);
    key
}

/// Text of few letters, so that many strings are equal except for case, accents or punctuation.
fn text() -> impl Strategy<Value = String> {
    let close =
        "[aAbB\u{e9}e\u{301}E \\-.,0129\u{df}sS\u{131}iI\u{3042}\u{30a2}\u{0}\u{1}\u{1100}\u{1161}\u{ac00}]{0,6}";
    prop_oneof![4 => close, 1 => "\\PC{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn sort_keys_order_as_comparisons_do(
        locale in prop::sample::select(vec!["en", "fr_CA", "de@collation=phonebook", "sv", "th", "ja", "tr", "ko", "zh", "da"]),
        strength in 1..=5,
        flags in 0..32_u8,
        a in text(),
        b in text(),
    ) {
        let strings = collation(locale, strength, flags);
        let wanted = strings.compare_strings(&a, &b);
        let (ascending, descending) = (Direction::Ascending, Direction::Descending);
        prop_assert_eq!(key(&strings, &a, ascending).cmp(&key(&strings, &b, ascending)), wanted);
        prop_assert_eq!(key(&strings, &b, descending).cmp(&key(&strings, &a, descending)), wanted);
    }
}
