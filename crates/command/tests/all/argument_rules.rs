//! The values that fields of commands allow: the rule of each kind, the kind of each field, and every field of every
//! command with every value.
//!
//! `tests/arguments/kinds.txt` shows the result of each kind for each value, and `tests/arguments/fields.txt` the kind
//! of each field. `tests/arguments/values.txt` shows rules that only one command has: `values` puts each value into the
//! field in the first line of the command that follows, and shows the codes of the replies.
//! `tests/arguments/explained.txt` shows where `explain` answers otherwise than the command inside it.
//! `REWRITE=1 cargo test` writes the replies into the files; read them.

use crate::server::Server;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef, number};
use bunko_command::{COMMANDS, Field, Kind};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_errors::Failure;
use bunko_store::LogOptions;
use bunko_testkit::shell;
use std::fmt::Write as _;

/// A value of each type, and the numbers, strings, documents and arrays that rules treat differently.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2147483647",
    "NumberLong(1)",
    "NumberLong(-1)",
    "NumberLong('9223372036854775807')",
    "1.0",
    "0.0",
    "-0.0",
    "-1.0",
    "1.5",
    "0.5",
    "-0.5",
    "1e20",
    "NaN",
    "Infinity",
    "-Infinity",
    "NumberDecimal('1')",
    "NumberDecimal('-0')",
    "NumberDecimal('1.5')",
    "NumberDecimal('-1')",
    "NumberDecimal('NaN')",
    "NumberDecimal('Infinity')",
    "true",
    "false",
    "null",
    "undefined",
    "''",
    "'a'",
    "'$a'",
    "'.a'",
    "{}",
    "{a: 1}",
    "[]",
    "[1]",
    "['a']",
    "[{}]",
    "[null]",
    "BinData(0, 'YQ==')",
    "UUID('00112233-4455-4677-8899-aabbccddeeff')",
    "ObjectId('000000000000000000000000')",
    "Date(0)",
    "/a/",
    "DBPointer('a', ObjectId('000000000000000000000000'))",
    "Code('1')",
    "Symbol('a')",
    "Code('1', {})",
    "Timestamp(1, 1)",
    "MinKey",
    "MaxKey",
];

/// Each kind by its name in the script.
const KINDS: &[(&str, Kind)] = &[
    ("Any", Kind::Any),
    ("Own", Kind::Own),
    ("Boolean", Kind::Boolean),
    ("Flag", Kind::Flag),
    ("BooleanLike", Kind::BooleanLike),
    ("Number", Kind::Number),
    ("NumberWithin(0, 1)", Kind::NumberWithin(0, 1)),
    ("Int", Kind::Int),
    ("Long", Kind::Long),
    ("Text", Kind::Text),
    ("Choice(a, b)", Kind::Choice(&["a", "b"])),
    ("Object", Kind::Object),
    ("ObjectOnly", Kind::ObjectOnly),
    ("Array", Kind::Array),
    ("ArrayOnly", Kind::ArrayOnly),
    ("Objects", Kind::Objects),
    ("Texts", Kind::Texts),
    ("Longs", Kind::Longs),
    ("Uuid", Kind::Uuid),
    ("Timestamp", Kind::Timestamp),
    ("Hint", Kind::Hint),
    ("OneOf(bool, object)", Kind::OneOf(&[bunko_bson::Type::Boolean, bunko_bson::Type::Document])),
];

fn value(text: &str) -> Value {
    let document = shell::parse_document(&format!("{{v: {text}}}")).unwrap_or_else(|error| panic!("{text}: {error}"));
    document.as_ref().get("v").expect("a value").to_value()
}

/// Values grouped by outcome, one group per line, ordered by the first value of each.
fn grouped(outcome_of: impl FnMut(&&str) -> String) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (text, outcome) in VALUES.iter().zip(VALUES.iter().map(outcome_of)) {
        match groups.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, values)) => values.push(text),
            None => groups.push((outcome, vec![text])),
        }
    }
    let mut output = String::new();
    for (outcome, values) in groups {
        let _ = writeln!(output, "{outcome}: {}", values.join("  "));
    }
    output
}

/// An error without the part of its message that depends on the value.
fn rule(failure: &Failure, value: ValueRef<'_>) -> String {
    let message = failure.message().replace(&format!("'{}'", value.kind().alias()), "'<type>'");
    let message = message.replace(&format!("found: {}", value.kind().alias()), "found: <type>");
    let message = message.split(", actual value").next().unwrap_or_default();
    format!("{} {}, {message}", failure.code().0, failure.code().name().as_str())
}

#[test]
fn each_kind_has_its_rule() {
    datadriven::walk("tests/arguments/kinds.txt", |file| {
        file.run(|case| {
            assert_eq!(case.directive, "kind", "unknown directive");
            let (_, kind) = KINDS.iter().find(|(name, _)| *name == case.input.trim()).expect("a known kind");
            let field = Field { name: "field", kind: *kind };
            grouped(|text| {
                let value = value(text);
                match field.check_value("command", value.as_ref()) {
                    Ok(()) if value.as_ref().is_nullish() => "missing".to_owned(),
                    Ok(()) => "taken".to_owned(),
                    Err(failure) => rule(&failure, value.as_ref()),
                }
            })
        });
    });
}

#[test]
fn each_field_has_a_kind() {
    datadriven::walk("tests/arguments/fields.txt", |file| {
        file.run(|case| {
            assert_eq!(case.directive, "fields", "unknown directive");
            let mut output = String::new();
            for command in COMMANDS {
                let _ = writeln!(output, "{}", command.name);
                for field in command.fields {
                    let _ = writeln!(output, "  {}: {:?}", field.name, field.kind);
                }
            }
            output
        });
    });
}

#[test]
fn every_field_of_every_command_follows_its_kind() {
    let mut server = start();
    for command in COMMANDS {
        for field in command.fields {
            for text in VALUES {
                let value = value(text);
                let Err(expected) = field.check_value(command.name, value.as_ref()) else { continue };
                let body = DocumentBuf::new().with(command.name, "c").with(field.name, &value);
                let reply = server.run(1, "admin", body.as_ref());
                let (code, message) = (code(&reply), reply.as_ref().get("errmsg").and_then(ValueRef::as_str));
                let expected = (Some(i64::from(expected.code().0)), Some(expected.message()));
                assert_eq!((code, message), expected, "{{{}: 'c', {}: {text}}}", command.name, field.name);
            }
        }
    }
}

#[test]
fn rules_of_their_own() {
    datadriven::walk("tests/arguments/values.txt", |file| {
        let mut server = start();
        file.run(|case| {
            let database = case.args.get("in").map_or("test", |values| values[0].as_str());
            let parse = |text: &str| shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            if case.directive == "run" {
                return format!("{}\n", outcome(&server.run(1, database, parse(case.input.trim()).as_ref())));
            }
            assert_eq!(case.directive, "values", "unknown directive");
            let (path, command) = case.input.split_once('\n').expect("a field and a command");
            let (path, command) = (path.split('.').collect::<Vec<_>>(), parse(command.trim()));
            grouped(|text| {
                let body = replaced(ValueRef::Document(command.as_ref()), &path, &value(text));
                let Value::Document(body) = body else { unreachable!("it was one") };
                outcome(&server.run(1, database, body.as_ref()))
            })
        });
    });
}

#[test]
fn explain_reads_fields_as_the_command_does() {
    datadriven::walk("tests/arguments/explained.txt", |file| {
        let mut server = start();
        file.run(|case| {
            let database = case.args.get("in").map_or("test", |values| values[0].as_str());
            let parse = |text: &str| shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let command = parse(case.input.trim());
            if case.directive == "run" {
                return format!("{}\n", outcome(&server.run(1, database, command.as_ref())));
            }
            assert_eq!(case.directive, "explained", "unknown directive");
            let name = command.as_ref().first().map_or("", |first| first.name);
            let entry = COMMANDS.iter().find(|entry| entry.name == name).expect("a command of the table");
            let mut output = String::new();
            for field in entry.fields {
                let differing = grouped(|text| {
                    let body = replaced(ValueRef::Document(command.as_ref()), &[field.name], &value(text));
                    let Value::Document(body) = body else { unreachable!("it was one") };
                    let explain = DocumentBuf::new().with("explain", &body).with("verbosity", "queryPlanner");
                    // Errors of statements have no name.
                    let code = |reply: &DocumentBuf| outcome(reply).split(' ').next().unwrap_or_default().to_owned();
                    let explained = code(&server.run(1, database, explain.as_ref()));
                    let ran = code(&server.run(1, database, body.as_ref()));
                    if explained == ran { "alike".to_owned() } else { format!("{ran}, explained {explained}") }
                });
                for line in differing.lines().filter(|line| !line.starts_with("alike: ")) {
                    let _ = writeln!(output, "{}: {line}", field.name);
                }
            }
            output
        });
    });
}

fn start() -> Server {
    Server::start_for_tests(&ENGINES[0], &EngineOptions::default(), LogOptions::default())
}

fn code(reply: &DocumentBuf) -> Option<i64> {
    reply.as_ref().get("code").and_then(number::as_i64_exact)
}

/// `ok`, or the code and its name. For a failed write, those of its first error.
fn outcome(reply: &DocumentBuf) -> String {
    let of_failure = |failure: &DocumentBuf| {
        let name = failure.as_ref().get("codeName").and_then(ValueRef::as_str).unwrap_or_default();
        code(failure).map(|code| format!("{code} {name}").trim_end().to_owned())
    };
    let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
    let first = errors.and_then(|errors| errors.get(0)?.as_document()).map(DocumentRef::to_owned);
    of_failure(reply).or_else(|| of_failure(&first?)).unwrap_or_else(|| "ok".to_owned())
}

/// A copy with another value at the end of the path. Each part of the path is a name or a position.
fn replaced(whole: ValueRef<'_>, path: &[&str], value: &Value) -> Value {
    let Some((name, rest)) = path.split_first() else { return value.clone() };
    match whole {
        ValueRef::Array(array) => {
            let mut copy = ArrayBuf::new();
            for (position, element) in array.iter().enumerate() {
                let is_meant = *name == position.to_string();
                copy.push(&if is_meant { replaced(element, rest, value) } else { element.to_value() });
            }
            Value::Array(copy)
        }
        ValueRef::Document(document) => {
            let mut copy = DocumentBuf::new();
            for element in document {
                let is_meant = *name == element.name;
                copy.append(
                    element.name,
                    &if is_meant { replaced(element.value, rest, value) } else { element.value.to_value() },
                );
            }
            if document.get(name).is_none() {
                copy.append(name, value);
            }
            Value::Document(copy)
        }
        other => panic!("{name} is looked for in {other:?}"),
    }
}
