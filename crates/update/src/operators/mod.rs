//! The update operators: one file and one line in [`OPERATORS`] per operator.

mod add_to_set;
mod arithmetic;
mod array_cull;
mod bit;
mod compare;
mod current_date;
mod inc;
mod max;
mod min;
mod mul;
mod pop;
mod pull;
mod pull_all;
mod push;
mod push_sort;
mod rename;
mod set;
mod set_on_insert;
mod sorted_values;
mod unset;

use crate::modifier::{BlockedPath, Effect, Modifier, Scene};
use crate::trie::Plan;
use bunko_bson::text::ElementText;
use bunko_bson::{Element, StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) use set::Set;

/// An entry of the operator table.
struct Operator {
    name: &'static str,
    /// Whether the operator compares strings.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    strings: StringUse,
    /// Parses one `path: argument` of the operator into the plan.
    parse: fn(&mut Plan, Element<'_>) -> Result<()>,
}

/// Counted steps for parsing one path.
const PATH_STEPS: usize = 64;

const OPERATORS: &[Operator] = &[
    add_to_set::OPERATOR,
    bit::OPERATOR,
    current_date::OPERATOR,
    inc::OPERATOR,
    max::OPERATOR,
    min::OPERATOR,
    mul::OPERATOR,
    pop::OPERATOR,
    pull::OPERATOR,
    pull_all::OPERATOR,
    push::OPERATOR,
    rename::OPERATOR,
    set::OPERATOR,
    set_on_insert::OPERATOR,
    unset::OPERATOR,
];

/// Parses an operator with all its paths into the plan; counts the work for the plan's operation, if there is one.
/// # Errors
/// `FailedToParse` for an unknown name or an argument that is not a document; errors of the operator's parser and of
/// the operation.
pub(crate) fn parse(plan: &mut Plan, modifier: Element<'_>) -> Result<()> {
    let Some(operator) = OPERATORS.iter().find(|operator| operator.name == modifier.name) else {
        return Err(Failure::failed_to_parse(format!(
            "Unknown modifier: {}. Expected a valid update modifier or pipeline-style update specified as an array",
            modifier.name
        )));
    };
    let ValueRef::Document(paths) = modifier.value else {
        return Err(Failure::failed_to_parse(format!(
            "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{}}}",
            modifier.value.kind().alias(),
            ElementText(modifier)
        )));
    };
    for path in paths {
        plan.operation().map_or(Ok(()), |operation| operation.work(PATH_STEPS))?;
        // The plan keeps a copy of each argument.
        plan.will_take(path.value.content_bytes())?;
        (operator.parse)(plan, path)?;
    }
    Ok(())
}

/// A whole number of any numeric type, as `$push`'s and `$pop`'s arguments allow.
fn whole_number(value: ValueRef<'_>) -> Option<i64> {
    bunko_bson::number::as_i64_exact(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApplyContext, Insertion, Outcome, ParseContext, Update};
    use bunko_bson::{StringOrder, Timestamp};
    use bunko_operation::OperationContext;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::handbook::{check, paragraph};
    use bunko_testkit::shell;
    use std::path::Path;
    use std::sync::Arc;

    const DOCUMENTS: &[&str] =
        &["{v: 'b'}", "{v: 'C'}", "{v: ['a', 'B', 'c']}", "{v: [{w: 'b'}, {w: 'A'}]}", "{v: 1}", "{w: 1}"];
    const ARGUMENTS: &[&str] = &[
        "'B'",
        "'C'",
        "['b', 'C']",
        "{$each: ['b', 'B']}",
        "{$each: [], $sort: 1}",
        "{$each: [{w: 'B'}], $sort: {w: 1}}",
        "{$in: ['A', 'b']}",
        "{w: 'B'}",
        "1",
        "{and: 1}",
        "true",
        "'x'",
    ];

    /// The operator's result for each document and each argument that it accepts.
    fn results(operator: &str, strings: &StringOrder) -> Vec<String> {
        let document = |text: &str| shell::parse_document(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        let operation = OperationContext::unlimited();
        let context = ApplyContext {
            matched_position: None,
            now_ms: 0,
            timestamp: Timestamp { seconds: 1, increment: 1 },
            insert: Insertion::No,
            operation: &operation,
        };
        let mut results = Vec::new();
        for argument in ARGUMENTS {
            let update = document(&format!("{{'{operator}': {{v: {argument}}}}}"));
            let parsing = ParseContext { strings, ..ParseContext::plain() };
            let Ok(update) = Update::parse(update.as_ref().into(), &parsing) else { continue };
            for text in DOCUMENTS {
                match update.apply(document(text).as_ref(), &context) {
                    Ok(Outcome::Unchanged) => results.push(format!("{argument} {text}: unchanged")),
                    Ok(Outcome::Changed(changed)) => results.push(format!("{argument} {text}: {changed:?}")),
                    Err(failure) => results.push(format!("{argument} {text}: {:?}", failure.code())),
                }
            }
        }
        results
    }

    #[test]
    fn operators_compare_strings_as_their_entries_say() {
        for operator in OPERATORS {
            let by_bytes = results(operator.name, StringOrder::BYTES);
            let collated = results(operator.name, &StringOrder::collated(Arc::new(WithoutCase)));
            let differing = by_bytes.iter().zip(&collated).find(|(one, other)| one != other);
            assert_eq!(
                differing.is_some(),
                operator.strings == StringUse::Collated,
                "{}: {differing:?}",
                operator.name
            );
        }
    }

    #[test]
    fn every_operator_has_a_script() {
        for operator in OPERATORS {
            let file = format!("{}.txt", operator.name.trim_start_matches('$'));
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(file);
            let text = std::fs::read_to_string(&script).unwrap_or_else(|error| panic!("{}: {error}", script.display()));
            assert!(text.contains(operator.name), "{} does not use {}", script.display(), operator.name);
        }
    }

    #[test]
    fn the_handbook_lists_every_operator() {
        let names = OPERATORS.iter().map(|operator| operator.name);
        check("reference/compatibility.md", "update operators", &paragraph(names));
    }
}
