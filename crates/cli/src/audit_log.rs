//! The file of the audit log.

use crate::configuration::AuditSettings;
use crate::log_file::LogOutput;
use crate::serve::now_ms;
use bunko_command::{AuditOptions, Service};
use std::sync::Arc;

/// Has a service note events in a file.
/// # Errors
/// A sentence that names the file, or what is wrong with the filter.
pub fn begin(settings: &AuditSettings, service: &mut Service) -> Result<(), String> {
    let path = settings.file.path.display().to_string();
    let file =
        LogOutput::open(Some(&settings.file)).map_err(|error| error.replace("systemLog.path", "auditLog.path"))?;
    let (file, of_rotation) = (Arc::new(file), path.clone());
    let rotated = Arc::clone(&file);
    let options = AuditOptions {
        filter: settings.filter.clone(),
        write: Box::new(move |line| {
            // Nobody finds out otherwise that events are missing.
            if let Err(error) = file.try_write_line(line) {
                tracing::error!(target: "CONTROL", id = 117, ctx = "audit", path, error = %error, "An event could not be written to the audit log");
            }
        }),
        rotate: Box::new(move || rotated.rotate(now_ms() as i64).map_err(|error| format!("{of_rotation}: {error}"))),
    };
    service.begin_audit(options).map_err(|failure| format!("auditLog.filter: {failure}"))
}
