//! The script runner, tested with shell syntax.

use bunko_testkit::{script, shell};

#[test]
fn scripts_pass() {
    script::run("tests/scripts", |case| match (case.directive.as_str(), shell::parse_value(&case.input)) {
        ("print", Ok(value)) => shell::print(value.as_ref()),
        ("print", Err(error)) => error,
        (other, _) => panic!("unknown directive {other}"),
    });
}

#[test]
#[should_panic(expected = "no cases below")]
fn a_mistyped_directory_does_not_pass() {
    script::run("tests/no_such_directory", |case| case.input.clone());
}
