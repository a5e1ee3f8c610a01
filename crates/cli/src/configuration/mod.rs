//! Configuration: files as mongod takes them, and flags.
//!
//! One table, [`table::SETTINGS`], says what can be configured; files, flags, `--print-config` and `getCmdLineOpts` are
//! functions of it. [`Settings`] is what comes out, checked.

mod addresses;
mod file;
mod flags;
mod in_force;
mod missing;
mod print;
mod query_text;
mod setting;
mod settings;
mod table;
mod tls;

pub use flags::{ServeArguments, shown as shown_arguments};
pub use in_force::Configuration;
pub use missing::refusal_of_flag;
pub use print::print;
pub use settings::{
    AuditDestination, AuditFormat, AuditSettings, ExistingLog, LogFile, LogRotation, ReplicaSetSettings, Settings,
    TestCommands,
};
