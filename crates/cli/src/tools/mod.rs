//! The command lines of `bunko dump`, `restore`, `copy`, `import`, `export`, `backup` and `upgrade`, and the parts that
//! other tools share with them.

mod backup;
mod compression;
mod connection;
mod copy;
mod dump;
mod export;
mod field_names;
mod import;
mod in_process;
mod login;
mod restore;
mod restore_backup;
mod tls_arguments;
mod upgrade;

pub use backup::BackupArguments;
pub use copy::CopyArguments;
pub use dump::DumpArguments;
pub use export::ExportArguments;
pub use import::ImportArguments;
pub use in_process::InProcess;
pub use login::{HOST_AND_USER, LoginArguments, Named};
pub use restore::RestoreArguments;
pub use tls_arguments::TlsArguments;
pub use upgrade::UpgradeArguments;

use field_names::field_names;
