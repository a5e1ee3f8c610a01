//! The tables of commands, stages and parameters in the handbook are those of the code.

use crate::server::Server;
use bunko_bson::Value;
use bunko_command::{COMMANDS, Command, Databases, Field, Kind, Privileges, TransactionUse};
use bunko_engines::EngineOptions;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{Explanation, ReadConcernUse, Retry, Stability, WriteConcernUse};
use bunko_request::field_kinds::{NOT_NEGATIVE, POSITIVE};
use bunko_settings::{PARAMETERS, Parameter};
use bunko_stages::{
    ApiUse, ConcernUse, FacetUse, Nesting, Place, STAGES, Source, Stage, StreamUse, Subject, UpdateUse,
};
use bunko_testkit::handbook::{Table, check_table, check_table_with_prose, list};

const COMMANDS_PAGE: &str = "reference/commands.md";
const STAGES_PAGE: &str = "reference/stages.md";

/// Commands by name, without regard to case.
fn commands() -> Vec<&'static Command> {
    let mut commands: Vec<&Command> = COMMANDS.iter().collect();
    commands.sort_by_key(|command| command.name.trim_start_matches('_').to_ascii_lowercase());
    commands
}

fn name_of(command: &Command) -> String {
    let names = [command.name].into_iter().chain(command.aliases.iter().copied());
    list(names)
}

#[test]
fn the_page_of_commands_says_where_each_may_be_used() {
    let mut uses = Table::new(&["Command", "Database", "Privilege", "Class", "In a transaction", "`explain`"]);
    let mut promises = Table::new(&["Command", "Read concern", "Write concern", "Retryable", "Stable API"]);
    for command in commands() {
        uses.push([
            name_of(command),
            database(command).to_owned(),
            privilege(command),
            class(command).to_owned(),
            transaction(command).to_owned(),
            if matches!(command.explain, Explanation::Refused | Explanation::Itself) { "" } else { "yes" }.to_owned(),
        ]);
        promises.push([
            list([command.name]),
            read_concern(command).to_owned(),
            write_concern(command).to_owned(),
            if command.retry == Retry::Safe { "yes" } else { "" }.to_owned(),
            stable_api(command),
        ]);
    }
    check_table(COMMANDS_PAGE, "uses of commands", &uses);
    check_table(COMMANDS_PAGE, "promises of commands", &promises);
}

#[test]
fn the_page_of_commands_has_their_fields() {
    let mut fields = Table::new(&["Command", "Fields"]);
    for command in commands() {
        let described = if command.fields.iter().any(|field| field.name == "*") {
            "any".to_owned()
        } else {
            command.fields.iter().map(described).collect::<Vec<_>>().join(", ")
        };
        fields.push([list([command.name]), described]);
    }
    check_table(COMMANDS_PAGE, "fields of commands", &fields);
}

fn database(command: &Command) -> &'static str {
    match command.databases {
        Databases::Any => "any",
        Databases::Admin => "`admin`",
        Databases::AdminOfTests => "`admin`, with test commands",
        Databases::AnyOfTests => "any, with test commands",
    }
}

fn privilege(command: &Command) -> String {
    match command.privileges {
        Privileges::Undeclared => panic!("{} declares no privileges", command.name),
        Privileges::BeforeLogin => "none".to_owned(),
        Privileges::Login => "a login".to_owned(),
        Privileges::OnCollection(action) => format!("`{}` on the collection", action.name()),
        Privileges::OnDatabase(action) => format!("`{}` on the database", action.name()),
        Privileges::OnCluster(action) => format!("`{}` on the cluster", action.name()),
        Privileges::By(_) | Privileges::ByServer(_) => "by request".to_owned(),
    }
}

fn class(command: &Command) -> &'static str {
    match command.class {
        OperationClass::Read => "read",
        OperationClass::Write => "write",
        OperationClass::Command => "",
    }
}

fn transaction(command: &Command) -> &'static str {
    match command.transaction {
        TransactionUse::Refused => "",
        TransactionUse::Anywhere => "yes",
        TransactionUse::NotFirst => "not as the first",
        TransactionUse::Commits | TransactionUse::Aborts => "ends it",
    }
}

fn read_concern(command: &Command) -> &'static str {
    match command.read_concern {
        ReadConcernUse::LocalOnly => "`local`",
        ReadConcernUse::AllLevels => "all",
        ReadConcernUse::NoSnapshot => "all but `snapshot`",
        ReadConcernUse::OfExplained => "of the explained command",
        ReadConcernUse::KeptByCursor => "of its cursor",
    }
}

fn write_concern(command: &Command) -> &'static str {
    match command.write_concern {
        WriteConcernUse::Refused => "",
        WriteConcernUse::Taken => "yes",
        WriteConcernUse::WithOutput => "with an output",
    }
}

fn stable_api(command: &Command) -> String {
    match command.stable_api {
        Stability::Outside => String::new(),
        Stability::Version1 { fields_outside: [] } => "1".to_owned(),
        Stability::Version1 { fields_outside } => format!("1, without {}", list(fields_outside.iter().copied())),
    }
}

/// A field and the values that it allows.
fn described(field: &Field) -> String {
    let values = values(field.kind);
    let name = field.name;
    if values.is_empty() { format!("`{name}`") } else { format!("`{name}`: {values}") }
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Any | Kind::Own => String::new(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Flag => "boolean\\*".to_owned(),
        Kind::BooleanLike => "boolean or number".to_owned(),
        Kind::Number => "number".to_owned(),
        NOT_NEGATIVE => "number from 0".to_owned(),
        POSITIVE => "number from 1".to_owned(),
        Kind::NumberWithin(min, max) => format!("number {min} to {max}"),
        Kind::Int => "int".to_owned(),
        Kind::Long => "long".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::Choice(choices) => choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(" or "),
        Kind::Object => "object".to_owned(),
        Kind::ObjectOnly => "object\\*".to_owned(),
        Kind::Array => "array".to_owned(),
        Kind::ArrayOnly => "array\\*".to_owned(),
        Kind::Objects => "array of objects".to_owned(),
        Kind::Texts => "array of strings".to_owned(),
        Kind::Longs => "array of longs".to_owned(),
        Kind::Uuid => "UUID".to_owned(),
        Kind::Timestamp => "timestamp".to_owned(),
        Kind::Hint => "string or object\\*".to_owned(),
        Kind::OneOf(types) => {
            format!("{}\\*", types.iter().map(|one| one.alias()).collect::<Vec<_>>().join(" or "))
        }
    }
}

#[test]
fn the_page_of_stages_says_where_each_may_stand() {
    let mut places = Table::new(&["Stage", "In a pipeline", "Inside `$facet`", "Inside other stages"]);
    let mut uses = Table::new(&[
        "Stage",
        "Read concern",
        "In a transaction",
        "Stable API",
        "In updates",
        "Behind `$changeStream`",
    ]);
    for stage in STAGES {
        places.push([
            list([stage.name]),
            place(stage),
            if stage.facet == FacetUse::Allowed { "yes" } else { "" }.to_owned(),
            nesting(stage).to_owned(),
        ]);
        uses.push([
            list([stage.name]),
            concern(stage).to_owned(),
            if stage.transaction == bunko_stages::TransactionUse::Allowed { "yes" } else { "" }.to_owned(),
            api(stage),
            if stage.update == UpdateUse::Allowed { "yes" } else { "" }.to_owned(),
            if stage.change_stream == StreamUse::Allowed { "yes" } else { "" }.to_owned(),
        ]);
    }
    check_table(STAGES_PAGE, "places of stages", &places);
    check_table(STAGES_PAGE, "uses of stages", &uses);
}

fn place(stage: &Stage) -> String {
    let of_source = match (stage.source, stage.place) {
        (Source::Input, Place::Anywhere) => return "anywhere".to_owned(),
        (Source::Input, Place::Last) => return "last".to_owned(),
        (Source::Input, Place::InChangeStream) => return "last, after `$changeStream`".to_owned(),
        _ => "first",
    };
    match stage.subject {
        Subject::Collection => of_source.to_owned(),
        Subject::Sessions => format!("{of_source}, on `config.system.sessions`"),
        Subject::CollectionOrServer => format!("{of_source}, also with `aggregate: 1`"),
        Subject::Server => format!("{of_source}, with `aggregate: 1`"),
        Subject::Admin => format!("{of_source}, with `aggregate: 1` on `admin`"),
    }
}

fn nesting(stage: &Stage) -> &'static str {
    match stage.nesting {
        Nesting::Anywhere => "yes",
        Nesting::NotInLookup => "not `$lookup`",
        Nesting::Outermost => "",
    }
}

fn concern(stage: &Stage) -> &'static str {
    match stage.read_concern {
        ConcernUse::Any => "all",
        ConcernUse::OnlyLocal => "`local`",
        ConcernUse::OnlyMajority => "`majority`",
        ConcernUse::NoPastStates => "all but `snapshot` and `linearizable`",
        ConcernUse::NotLinearizable => "all but `linearizable`",
    }
}

fn api(stage: &Stage) -> String {
    match stage.stable_api {
        ApiUse::Version1 => "1".to_owned(),
        ApiUse::Version1With { field } => format!("1, with `{field}` only"),
        ApiUse::Outside => String::new(),
    }
}

/// Compares the commands that the page of compatibility groups by their purpose with the table.
#[test]
fn commands_are_grouped_with_their_spellings() {
    let page = include_str!("../../../../docs/reference/compatibility.md");
    let groups = page.split_once("\n## Commands\n").and_then(|(_, rest)| rest.split_once("\n### ")).expect("groups").0;
    for command in COMMANDS {
        let star = if command.databases.is_admin_only() { "\\*" } else { "" };
        let spellings = list(command.aliases.iter().copied());
        let spellings = if spellings.is_empty() { spellings } else { format!(" ({spellings})") };
        let entry = format!("`{}`{star}{spellings}", command.name);
        assert!(
            [",", " |"].iter().any(|end| groups.contains(&format!("{entry}{end}"))),
            "docs/reference/compatibility.md does not list {entry}"
        );
    }
}

#[test]
fn the_page_of_settings_has_every_parameter() {
    let server = Server::start(&bunko_engines::ENGINES[0], &EngineOptions::default());
    let default = |parameter: &Parameter| match (parameter.read)(&server.service).expect("a value") {
        Value::String(text) if text.is_empty() => "empty".to_owned(),
        Value::String(text) => list([text.as_str()]),
        Value::Boolean(boolean) => list([boolean.to_string().as_str()]),
        Value::Document(_) | Value::Array(_) => String::new(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Double(number) if number == f64::MAX => "no limit".to_owned(),
        Value::Double(number) => number.to_string(),
        other => panic!("{}: {other:?}", parameter.name),
    };
    let mut at_runtime = Table::new(&["Parameter", "Default"]);
    let mut at_start = Table::new(&["Parameter", "Default"]);
    for parameter in PARAMETERS {
        let cells = [list([parameter.name]), default(parameter)];
        if parameter.write.is_some() {
            at_runtime.push(cells);
        } else if parameter.begin.is_some() {
            at_start.push(cells);
        }
    }
    check_table_with_prose("reference/settings.md", "parameters", at_runtime, "Values");
    check_table_with_prose("reference/settings.md", "parameters at the start", at_start, "Values");
}
