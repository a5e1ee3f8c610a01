//! Settings about access control, the audit log, and scripts of clients.

use super::{Kind, PLAIN, Setting, Value, parameter};
use crate::configuration::query_text::parse_query;

pub const AUTHORIZATION: Setting = Setting {
    keys: &["security.authorization"],
    flag: "auth",
    help: "Require a login, and allow users what their roles allow; in a file enabled or disabled [default: disabled]",
    value_name: "true|false",
    kind: Kind::Enabled,
    negations: &["no-auth", "noauth"],
    default: |_| Some(Value::Text("disabled".into())),
    ..PLAIN
};
pub const KEY_FILE: Setting = Setting {
    keys: &["security.keyFile"],
    flag: "key-file",
    mongod_flag: Some("keyFile"),
    help: "File with the key by which the members of a set log in to each other; it turns --auth on",
    value_name: "FILE",
    ..PLAIN
};
pub const CLUSTER_AUTH_MODE: Setting = Setting {
    keys: &["security.clusterAuthMode"],
    flag: "cluster-auth-mode",
    mongod_flag: Some("clusterAuthMode"),
    help: "How members of a set log in to each other: keyFile, or x509 by certificates with the organization, unit and domain \
           components of the server's own, which turns --auth on [default: keyFile]",
    value_name: "MODE",
    kind: Kind::Text(check_cluster_auth_mode),
    default: |_| Some(Value::Text("keyFile".into())),
    ..PLAIN
};
pub const INSECURE: Setting = Setting {
    keys: &["security.insecure"],
    flag: "insecure",
    help: "Do not warn that other machines can reach a server without --auth [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const REDACT: Setting = Setting {
    keys: &["security.redactClientLogData"],
    flag: "redact-client-log-data",
    mongod_flag: Some("redactClientLogData"),
    help: "Show no values of clients in the log [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const AUDIT_DESTINATION: Setting = Setting {
    keys: &["auditLog.destination"],
    flag: "audit-destination",
    mongod_flag: Some("auditDestination"),
    help: "Where the audit log goes: file, with --audit-path, syslog, or console [default: there is none]",
    value_name: "NAME",
    kind: Kind::Text(check_audit_destination),
    ..PLAIN
};
pub const AUDIT_FORMAT: Setting = Setting {
    keys: &["auditLog.format"],
    flag: "audit-format",
    mongod_flag: Some("auditFormat"),
    help: "Format of the audit log: JSON, or in a file BSON [default: JSON]",
    value_name: "NAME",
    kind: Kind::Text(check_audit_format),
    ..PLAIN
};
pub const AUDIT_PATH: Setting = Setting {
    keys: &["auditLog.path"],
    flag: "audit-path",
    mongod_flag: Some("auditPath"),
    help: "File for the audit log; the server appends to it",
    value_name: "FILE",
    ..PLAIN
};
pub const AUDIT_FILTER: Setting = Setting {
    keys: &["auditLog.filter"],
    flag: "audit-filter",
    mongod_flag: Some("auditFilter"),
    help: "Which events are written: a query, such as { atype: \"authenticate\" } [default: all]",
    value_name: "QUERY",
    kind: Kind::Text(|text| parse_query(text).map(drop)),
    ..PLAIN
};
pub const AUDIT_RUNTIME: Setting = Setting {
    keys: &["auditLog.runtimeConfiguration"],
    flag: "audit-runtime-configuration",
    mongod_flag: Some("auditRuntimeConfiguration"),
    help: "Let clients choose the events to write, by the cluster parameter auditConfig [default: false]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(false)),
    ..PLAIN
};
pub const AUDIT_SUCCESSES: Setting =
    parameter(&["setParameter.auditAuthorizationSuccess"], "audit-authorization-success", Kind::Truth);
pub const JAVASCRIPT: Setting = Setting {
    keys: &["security.javascriptEnabled"],
    flag: "scripting",
    negations: &["no-scripting", "noscripting"],
    help: "Run the JavaScript of clients: $where, $function, $accumulator and mapReduce [default: true]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(true)),
    ..PLAIN
};
fn check_cluster_auth_mode(mode: &str) -> Result<(), String> {
    match mode {
        "keyFile" | "x509" => Ok(()),
        "sendKeyFile" | "sendX509" => Err(format!("'{mode}' is not supported yet, only keyFile and x509")),
        _ => Err(format!("'{mode}' is none of keyFile, x509")),
    }
}

fn check_audit_destination(name: &str) -> Result<(), String> {
    match name {
        "file" | "syslog" | "console" => Ok(()),
        _ => Err(format!("'{name}' is none of file, syslog, console")),
    }
}

fn check_audit_format(name: &str) -> Result<(), String> {
    match name {
        "JSON" | "BSON" => Ok(()),
        _ => Err(format!("'{name}' is none of JSON, BSON")),
    }
}
