//! Runs `tests/scripts`: the meaning of filters and their errors, in readable files.
//!
//! - `match`: a filter, then documents; prints whether each document matches.
//! - `details`: a filter, then documents; prints why each document does not match.
//! - `position`: as `match`, with the index for the positional operator `$`.
//! - `parse`: filters; prints each in normal form, or its error.
//! - `parse-plan`: as `parse`, for filters of a plan, which may contain `$near`.
//! - `pull`: a condition of `$pull`, then array elements.
//! - `array-filter`: an entry of `arrayFilters`, then array elements.
//! - `prefix`: regular expressions; prints what the planner may assume about matching strings.

use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::Failure;
use bunko_matcher::{ArrayFilter, ElementFilter, ExprCompiler, ExprPredicate, Filter, Regex};
use bunko_operation::OperationContext;
use bunko_testkit::{script, shell};
use std::sync::Arc;

#[test]
fn scripts() {
    script::run("tests/scripts", |case| {
        let mut lines = case.input.lines();
        let output: Vec<String> = match case.directive.as_str() {
            "parse" => lines.map(|line| parse(line, Filter::parse)).collect(),
            "parse-plan" => lines.map(|line| parse(line, plan_filter)).collect(),
            "prefix" => lines.map(prefix).collect(),
            directive => {
                let first = lines.next().expect("a filter");
                match matcher(directive, first) {
                    Ok(matches) => lines.map(matches).collect(),
                    Err(failure) => vec![show(&failure)],
                }
            }
        };
        output.join("\n")
    });
}

type Matcher = Box<dyn Fn(&str) -> String>;

fn matcher(directive: &str, source: &str) -> Result<Matcher, Failure> {
    Ok(match directive {
        "match" => {
            let filter = Filter::parse(document(source).as_ref())?;
            Box::new(move |line| filter.try_matches(document(line).as_ref()).is_ok_and(|matched| matched).to_string())
        }
        "details" => {
            let filter = Filter::parse_validator(document(source).as_ref(), &NoExpressions)?;
            let operation = OperationContext::unlimited();
            Box::new(move |line| {
                let details = filter.failure_details(document(line).as_ref(), &operation).expect("never stopped");
                shell::print(ValueRef::Document(details.as_ref()))
            })
        }
        "position" => {
            let filter = Filter::parse(document(source).as_ref())?;
            Box::new(move |line| match filter.matches_with_position(document(line).as_ref()) {
                Ok(None) => "no match".to_owned(),
                Ok(Some(position)) => {
                    position.index.map_or_else(|| "match".to_owned(), |index| format!("match at {index}"))
                }
                Err(failure) => show(&failure),
            })
        }
        "pull" => {
            let filter = ElementFilter::parse(value(source).as_ref(), StringOrder::BYTES, None)?;
            let operation = OperationContext::unlimited();
            Box::new(move |line| filter.matches(value(line).as_ref(), &operation).expect("never stopped").to_string())
        }
        "array-filter" => {
            let filter = ArrayFilter::parse(document(source).as_ref(), StringOrder::BYTES, None)?;
            let operation = OperationContext::unlimited();
            Box::new(move |line| {
                let matched = filter.matches(value(line).as_ref(), &operation).expect("never stopped");
                format!("$[{}] {matched}", filter.identifier())
            })
        }
        unknown => panic!("unknown directive {unknown}"),
    })
}

/// A filter's normal form, which must parse to itself.
fn parse(line: &str, parse: fn(DocumentRef<'_>) -> Result<Filter, Failure>) -> String {
    let normal = |source: &DocumentBuf| parse(source.as_ref()).map(|filter| filter.to_document());
    match normal(&document(line)) {
        Ok(once) => {
            let twice = normal(&once).expect("a normal form is a filter");
            assert_eq!(once, twice, "the normal form of {line} is not its own");
            shell::print(ValueRef::Document(once.as_ref()))
        }
        Err(failure) => show(&failure),
    }
}

struct NoExpressions;

impl ExprCompiler for NoExpressions {
    fn compile(&self, _expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>, Failure> {
        Err(Failure::bad_value("no expressions here"))
    }

    fn operation(&self) -> Option<&OperationContext> {
        None
    }
}

fn plan_filter(filter: DocumentRef<'_>) -> Result<Filter, Failure> {
    Filter::parse_for_plan(filter, &NoExpressions)
}

fn prefix(line: &str) -> String {
    let Value::Regex { pattern, options } = value(line) else { panic!("{line} is not a regex") };
    match Regex::new(&pattern, &options).map(|regex| regex.prefix()) {
        Ok(None) => "none".to_owned(),
        Ok(Some(prefix)) if prefix.exact => format!("exactly {:?}", prefix.literal),
        Ok(Some(prefix)) => format!("at least {:?}", prefix.literal),
        Err(failure) => show(&failure),
    }
}

fn show(failure: &Failure) -> String {
    format!("{} ({}): {}", failure.code().name(), failure.code().0, failure.message())
}

fn document(line: &str) -> DocumentBuf {
    shell::parse_document(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn value(line: &str) -> Value {
    shell::parse_value(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}
