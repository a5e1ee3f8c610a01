//! Compares patterns with their documentation, and with a slow model.

use super::*;
use proptest::prelude::*;

fn filter(include: &[&str], exclude: &[&str]) -> Result<Filter, PatternError> {
    let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
    Filter::new(&owned(include), &owned(exclude))
}

fn renamed(from: &str, to: &str, namespace: &str) -> Result<String, PatternError> {
    Ok(Renames::new(&[from.to_owned()], &[to.to_owned()])?.apply(namespace).into_owned())
}

#[test]
fn an_exclusion_wins_and_no_inclusion_is_all() {
    let filter = filter(&["data.*", "*.orders"], &["data.tmp*"]).expect("valid");
    let taken = ["data.a", "data.a.b", "shop.orders", "data.tmp1", "shop.users", "data"];
    assert_eq!(taken.map(|namespace| filter.takes(namespace)), [true, true, true, false, false, false]);
    assert!(Filter::default().takes("a.b"));
}

#[test]
fn escapes_and_dollars_are_plain_characters_in_filters() {
    let filter = filter(&[r"a.\*", r"a.\\", "a.$x"], &[]).expect("valid");
    assert_eq!(["a.*", "a.b", r"a.\", "a.$x"].map(|namespace| filter.takes(namespace)), [true, false, true, true]);
}

#[test]
fn shorthands_take_names_literally() {
    let of_both = Filter::default().with(Some("a*"), Some("b.c"));
    assert_eq!(["a*.b.c", "ab.b.c", "a*.b"].map(|namespace| of_both.takes(namespace)), [true, false, false]);
    let of_database = Filter::default().with(Some("a"), None);
    assert_eq!(["a.b", "a.b.c", "ab.c"].map(|namespace| of_database.takes(namespace)), [true, true, false]);
}

#[test]
fn a_database_is_taken_if_none_of_its_collections_is_left_out() {
    let takes = |include: &[&str], exclude: &[&str]| filter(include, exclude).expect("valid").takes_database("a");
    for (include, exclude) in [
        (&[][..], &[][..]),
        (&[], &["b.c", "b.*", "ab.*", "a"]),
        (&["a.*"], &[]),
        (&["*"], &["b*"]),
        (&["b.c", "*.*"], &[]),
    ] {
        assert!(takes(include, exclude), "{include:?} {exclude:?}");
    }
    for (include, exclude) in [
        (&[][..], &["a.b"][..]),
        (&[], &["a.*"]),
        (&[], &["*.b"]),
        (&[], &["a*"]),
        (&[], &["a*c"]),
        (&[], &["*"]),
        (&["a.b"], &[]),
        (&["a.b*"], &[]),
        (&["b.*"], &[]),
        (&["a.*"], &["a.b"]),
    ] {
        assert!(!takes(include, exclude), "{include:?} {exclude:?}");
    }
}

#[test]
fn variables_and_asterisks_carry_over() {
    assert_eq!(
        renamed("transactions.$customer$_$account$", "$customer$.transactions_$account$", "transactions.ann_7"),
        Ok("ann.transactions_7".to_owned())
    );
    assert_eq!(renamed("test.*", "copy.*", "test.a.b"), Ok("copy.a.b".to_owned()));
    assert_eq!(renamed("*.a*", "x*.b*", "one.a2"), Ok("xone.b2".to_owned()));
    assert_eq!(renamed("$a$.c", "$a$.$a$", "d.c"), Ok("d.d".to_owned()));
    assert_eq!(renamed(r"a.\$b", r"a.\$c", "a.$b"), Ok("a.$c".to_owned()));
    assert_eq!(renamed("x.*", "y.*", "untouched.c"), Ok("untouched.c".to_owned()));
}

#[test]
fn the_first_pair_that_matches_counts() {
    let texts = |texts: [&str; 2]| texts.map(str::to_owned);
    let renames = Renames::new(&texts(["a.b", "a.*"]), &texts(["c.d", "e.*"])).expect("valid");
    assert_eq!((renames.apply("a.b"), renames.apply("a.x")), ("c.d".into(), "e.x".into()));
}

#[test]
fn refusals_name_what_is_wrong() {
    let shown = |from: &str, to: &str| renamed(from, to, "a.b").map_err(|error| error.to_string()).unwrap_err();
    let expected = [
        (("a.$b", "a.b"), "namespace pattern 'a.$b' opens a variable with '$' and does not close it"),
        (("a.$$", "a.b"), "namespace pattern 'a.$$': '' is not a name of a variable (letters, digits, underscores)"),
        (("$a$.$a$", "b.c"), "--nsFrom '$a$.$a$' has the variable 'a' twice"),
        (("$a$.b", "$c$.b"), "--nsTo '$c$.b' names the variable 'c', which --nsFrom '$a$.b' does not have"),
        (("*.*", "a.*"), "--nsFrom '*.*' and --nsTo 'a.*' do not have equally many asterisks"),
        (("a\\", "b"), "namespace pattern 'a\\' ends with a backslash that escapes nothing"),
        (("", "b"), "a namespace pattern is empty"),
    ];
    for ((from, to), message) in expected {
        assert_eq!(shown(from, to), message);
    }
    let unpaired = Renames::new(&["a.b".to_owned()], &[]).map_err(|error| error.to_string()).unwrap_err();
    assert_eq!(unpaired, "--nsFrom was given 1 times and --nsTo 0 times: they come in pairs");
}

/// Whether a pattern of plain characters and asterisks matches, by trying everything.
fn model(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|end| model(rest, &text[end..])),
        Some((character, rest)) => text.first() == Some(character) && model(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn asterisks_match_as_the_model_does(pattern in "[ab.é*]{1,8}", text in "[ab.é]{0,10}") {
        let expected = model(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
        prop_assert_eq!(filter(&[&pattern], &[]).expect("valid").takes(&text), expected);
    }

    #[test]
    fn captures_put_back_where_they_were_give_the_text(pattern in "[ab.é*]{1,8}", text in "[ab.é]{0,10}") {
        prop_assert_eq!(renamed(&pattern, &pattern, &text), Ok(text.clone()));
    }

    #[test]
    fn no_pattern_and_no_text_panics(from in "[a.$*\\\\é]{0,12}", to in "[a.$*\\\\é]{0,12}", text in ".{0,12}") {
        let _ = renamed(&from, &to, &text);
    }
}
