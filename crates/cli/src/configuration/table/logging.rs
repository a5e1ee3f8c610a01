//! What the server tells of itself: its log, slow operations, its process id.

use super::{Kind, PLAIN, Setting, Value};
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
    help: "Append to a log that exists; otherwise that stops the start [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const LOG_ROTATE: Setting = Setting {
    keys: &["systemLog.logRotate"],
    flag: "log-rotate",
    mongod_flag: Some("logRotate"),
    help: "What SIGUSR1 and logRotate do with the log file: rename it, or reopen what was renamed [default: rename]",
    value_name: "HOW",
    kind: Kind::OneOf(&["rename", "reopen"]),
    default: |configuration| configuration.given(&LOG_PATH).map(|_| Value::Text("rename".into())),
    ..PLAIN
};
pub const LOG_FORMAT: Setting = Setting {
    keys: &["systemLog.format"],
    flag: "log-format",
    help: "How log lines look, json or text [default: text on a terminal, json elsewhere]",
    value_name: "FORMAT",
    kind: Kind::OneOf(&["json", "text"]),
    default: |_| Some(Value::Text(if std::io::stderr().is_terminal() { "text" } else { "json" }.into())),
    ..PLAIN
};
pub const SLOW_MS: Setting = Setting {
    keys: &["operationProfiling.slowOpThresholdMs"],
    flag: "slow-ms",
    mongod_flag: Some("slowms"),
    help: "Operations that take that many milliseconds are logged [default: 100]",
    value_name: "MS",
    kind: Kind::Whole(0..=i32::MAX as i64),
    default: |_| Some(Value::Whole(100)),
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
