//! Configuration: files in mongod's format, and flags.
//!
//! The table [`table::SETTINGS`] defines all settings; files, flags, `--print-config` and `getCmdLineOpts` are derived
//! from it. [`Settings`] is the checked result.

mod addresses;
mod file;
mod flags;
#[cfg(test)]
mod handbook;
mod in_force;
mod log_format;
mod missing;
mod print;
mod query_text;
mod setting;
mod settings;
mod table;
mod tls;

pub use flags::{ServeArguments, shown as shown_arguments};
pub use in_force::Configuration;
pub use log_format::LogFormat;
pub use missing::refusal_of_flag;
pub use print::print;
pub use settings::{
    AuditDestination, AuditFormat, AuditSettings, ExistingLog, LogFile, LogRotation, ReplicaSetSettings, Settings,
    TestCommands,
};
