//! Settings about the log, slow operations and the file with the process id.

use super::{Kind, PLAIN, Setting, Value};
use bunko_traces::Endpoint;
use std::io::IsTerminal;

pub const LOG_DESTINATION: Setting = Setting {
    keys: &["systemLog.destination"],
    flag: "log-destination",
    help: "Where the log goes: file, with --log-path [default: standard error without --log-path]",
    value_name: "NAME",
    kind: Kind::OneOf(&["file"]),
    ..PLAIN
};
pub const LOG_PATH: Setting = Setting {
    keys: &["systemLog.path"],
    flag: "log-path",
    mongod_flag: Some("logpath"),
    help: "File for the log [default: standard error]",
    value_name: "FILE",
    ..PLAIN
};
pub const LOG_APPEND: Setting = Setting {
    keys: &["systemLog.logAppend"],
    flag: "log-append",
    mongod_flag: Some("logappend"),
    help: "Append to a log that exists; without this, such a log stops the start [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const LOG_ROTATE: Setting = Setting {
    keys: &["systemLog.logRotate"],
    flag: "log-rotate",
    mongod_flag: Some("logRotate"),
    help: "How SIGUSR1 and logRotate rotate the log file: rename it, or reopen it after another program has renamed it \
           [default: rename]",
    value_name: "HOW",
    kind: Kind::OneOf(&["rename", "reopen"]),
    default: |configuration| configuration.given(&LOG_PATH).map(|_| Value::Text("rename".into())),
    ..PLAIN
};
pub const LOG_FORMAT: Setting = Setting {
    keys: &["systemLog.format"],
    flag: "log-format",
    help: "Format of log lines, json or text [default: text on a terminal, json elsewhere]",
    value_name: "FORMAT",
    kind: Kind::OneOf(&["json", "text"]),
    default: |_| Some(Value::Text(if std::io::stderr().is_terminal() { "text" } else { "json" }.into())),
    ..PLAIN
};
pub const SLOW_MS: Setting = Setting {
    keys: &["operationProfiling.slowOpThresholdMs"],
    flag: "slow-ms",
    mongod_flag: Some("slowms"),
    help: "Log operations that take this many milliseconds or more [default: 100]",
    value_name: "MS",
    kind: Kind::Whole(0..=i32::MAX as i64),
    default: |_| Some(Value::Whole(100)),
    ..PLAIN
};
pub const LOG_QUIET: Setting = Setting {
    keys: &["systemLog.quiet"],
    flag: "quiet",
    help: "Do not log that connections are opened and closed [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const LOG_VERBOSITY: Setting = Setting {
    keys: &["systemLog.verbosity"],
    flag: "verbosity",
    help: "From 1 on, log every command and not only slow ones; -v means 1, -vv means 2 [default: 0]",
    value_name: "LEVEL",
    kind: Kind::Whole(0..=5),
    default: |_| Some(Value::Whole(0)),
    ..PLAIN
};
pub const SLOW_SAMPLE_RATE: Setting = Setting {
    keys: &["operationProfiling.slowOpSampleRate"],
    flag: "slow-op-sample-rate",
    mongod_flag: Some("slowOpSampleRate"),
    help: "Fraction of slow operations that is logged and profiled [default: 1]",
    value_name: "RATE",
    kind: Kind::Number(0.0..=1.0),
    default: |_| Some(Value::Number(1.0)),
    ..PLAIN
};
pub const PROFILING_MODE: Setting = Setting {
    keys: &["operationProfiling.mode"],
    flag: "profile",
    help: "Operations that system.profile notes, unless clients set another level for a database: off (0), slowOp (1) or \
           all (2) [default: off]",
    value_name: "MODE",
    kind: Kind::OneOf(&["off", "slowOp", "all", "0", "1", "2"]),
    default: |_| Some(Value::Text("off".into())),
    ..PLAIN
};
pub const TRACE_ENDPOINT: Setting = Setting {
    keys: &["setParameter.opentelemetryHttpEndpoint"],
    flag: "opentelemetry-http-endpoint",
    help: "Send slow operations as spans to this collector of OpenTelemetry (OTLP over HTTP), such as \
           http://localhost:4318/v1/traces [default: none]",
    value_name: "URL",
    kind: Kind::Text(|url| Endpoint::parse(url).map(drop)),
    ..PLAIN
};
pub const PID_FILE_PATH: Setting = Setting {
    keys: &["processManagement.pidFilePath"],
    flag: "pid-file-path",
    mongod_flag: Some("pidfilepath"),
    help: "File for the process id, removed by an orderly end",
    value_name: "FILE",
    ..PLAIN
};
