//! Runs the scripts in `tests/scripts`.
//!
//! Directive `update`: a document, an update, then any of `arrayFilters: [...]`, `constants: {...}`, `position: n`,
//! `multi`. The answer is the next document, `unchanged`, or an error. With `upsert`, the first line is the filter.

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use bunko_testkit::{script, shell};
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Targets, Telling, Update};

struct Statement {
    document: DocumentBuf,
    update: Value,
    array_filters: Vec<DocumentBuf>,
    constants: Option<DocumentBuf>,
    matched_position: Option<usize>,
    insert: Insertion,
    targets: Targets,
}

fn parse_statement(input: &str) -> Statement {
    let mut lines = input.lines();
    let document = document(lines.next().expect("a document"));
    let update = value(lines.next().expect("an update"));
    let mut statement = Statement {
        document,
        update,
        array_filters: Vec::new(),
        constants: None,
        matched_position: None,
        insert: Insertion::No,
        targets: Targets::One,
    };
    for line in lines {
        match line.split_once(':').map_or((line, ""), |(option, argument)| (option, argument.trim())) {
            ("arrayFilters", filters) => {
                let filters = value(filters);
                let filters = filters.as_ref().as_array().expect("an array of filters");
                statement.array_filters =
                    filters.iter().map(|filter| filter.as_document().expect("a filter").to_owned()).collect();
            }
            ("constants", constants) => statement.constants = Some(self::document(constants)),
            ("position", position) => statement.matched_position = Some(position.parse().expect("a position")),
            ("upsert", _) => statement.insert = Insertion::Upsert,
            ("multi", _) => statement.targets = Targets::Many,
            (other, _) => panic!("unknown option {other}"),
        }
    }
    statement
}

fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn value(text: &str) -> Value {
    shell::parse_value(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn applied<T>(
    statement: &Statement,
    apply: impl FnOnce(&Update, DocumentRef<'_>, &ApplyContext<'_>) -> Result<T>,
) -> Result<T> {
    let filters: Vec<DocumentRef<'_>> = statement.array_filters.iter().map(DocumentBuf::as_ref).collect();
    let parsing = ParseContext {
        array_filters: &filters,
        targets: statement.targets,
        constants: statement.constants.as_ref().map(DocumentBuf::as_ref),
        ..ParseContext::plain()
    };
    let update = Update::parse(statement.update.as_ref(), &parsing)?;
    let operation = OperationContext::unlimited();
    let context = ApplyContext {
        matched_position: statement.matched_position,
        now_ms: 1_700_000_000_000,
        timestamp: Timestamp { seconds: 1_700_000_000, increment: 7 },
        insert: statement.insert,
        operation: &operation,
    };
    apply(&update, statement.document.as_ref(), &context)
}

fn run(statement: &Statement) -> Result<Outcome> {
    applied(statement, |update, document, context| match statement.insert {
        Insertion::No => update.apply(document, context),
        Insertion::Upsert => {
            let base = update.upsert_base(document, context.operation)?;
            Ok(match update.apply(base.as_ref(), context)? {
                Outcome::Unchanged => Outcome::Changed(base),
                changed @ Outcome::Changed(_) => changed,
            })
        }
    })
}

fn answer(result: Result<Outcome>) -> String {
    match result {
        Ok(Outcome::Unchanged) => "unchanged".to_owned(),
        Ok(Outcome::Changed(document)) => {
            DocumentRef::parse(document.as_ref().as_bytes()).expect("an update writes valid documents");
            shell::print(ValueRef::Document(document.as_ref()))
        }
        Err(failure) => describe(&failure),
    }
}

fn describe(failure: &Failure) -> String {
    format!("{} ({}): {}", failure.code().name(), failure.code().0, failure.message())
}

#[test]
fn scripts() {
    script::run("tests/scripts", |case| match case.directive.as_str() {
        "delta" => {
            let statement = parse_statement(&case.input);
            applied(&statement, |update, document, context| {
                Ok(match update.apply_telling(document, context, Telling::Delta)? {
                    (_, Some(delta)) => {
                        DocumentRef::parse(delta.as_ref().as_bytes()).expect("a delta is a valid document");
                        shell::print(ValueRef::Document(delta.as_ref()))
                    }
                    (Outcome::Unchanged, None) => "unchanged".to_owned(),
                    (Outcome::Changed(_), None) => "nothing".to_owned(),
                })
            })
            .unwrap_or_else(|failure| describe(&failure))
        }
        "update" => answer(run(&parse_statement(&case.input))),
        other => panic!("unknown directive {other}"),
    });
}
