//! Configuration: files in mongod's format, and flags.
//!
//! The table [`table::SETTINGS`] defines all settings; files, flags, `--print-config` and `getCmdLineOpts` are derived
//! from it. [`Settings`] is the checked result.

mod addresses;
mod audit;
mod cluster_auth;
mod console;
mod file;
mod flags;
#[cfg(test)]
mod handbook;
mod host_port;
mod in_force;
mod log_file;
mod log_format;
mod missing;
mod print;
mod query_text;
mod reading;
mod setting;
mod settings;
mod shown_by_mongod;
mod table;
mod tls;
mod tls_versions;

pub use audit::{AuditDestination, AuditFormat, AuditSettings};
pub use cluster_auth::ClusterAuth;
pub use flags::{ServeArguments, shown as shown_arguments};
pub use in_force::Configuration;
pub use log_file::{ExistingLog, LogFile, LogRotation};
pub use log_format::LogFormat;
pub use missing::refusal_of_flag;
pub use print::print;
pub use settings::{ReplicaSetSettings, Settings, TestCommands};
pub use shown_by_mongod::refusals as refusals_of_settings;
