//! Audit options, from the settings.

use super::in_force::Configuration;
use super::log_file::{ExistingLog, LogFile, LogRotation};
use super::query_text::parse_query;
use super::table::{AUDIT_DESTINATION, AUDIT_FILTER, AUDIT_FORMAT, AUDIT_PATH, AUDIT_RUNTIME, AUDIT_SUCCESSES};
use bunko_bson::DocumentBuf;

/// Which events are audited, and their destination.
#[derive(Debug)]
pub struct AuditSettings {
    pub destination: AuditDestination,
    pub format: AuditFormat,
    pub filter: Option<DocumentBuf>,
    /// Whether clients may change which events are audited.
    pub is_configurable: bool,
}

/// Destination of audit events.
#[derive(Debug)]
pub enum AuditDestination {
    File(LogFile),
    /// Standard output.
    Console,
    /// The socket of the machine's logging daemon.
    Syslog,
}

/// Format of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// One line per event.
    Json,
    /// BSON documents one after the other.
    Bson,
}

/// The audit options; `None` if nothing is audited.
/// # Errors
/// A sentence that names the settings that contradict each other.
pub fn options(configuration: &Configuration) -> Result<Option<AuditSettings>, String> {
    if configuration.given(&AUDIT_DESTINATION).is_none() {
        let given = [AUDIT_PATH, AUDIT_FILTER, AUDIT_FORMAT].into_iter().find(|one| configuration.given(one).is_some());
        let turned_on = configuration.is_on(&AUDIT_RUNTIME).then_some(AUDIT_RUNTIME);
        return match given.or(turned_on) {
            Some(given) => Err(format!("{} needs {}", configuration.name_of(&given), AUDIT_DESTINATION.key())),
            None => Ok(None),
        };
    }
    let name = configuration.text(&AUDIT_DESTINATION).unwrap_or_default();
    let format = match configuration.text(&AUDIT_FORMAT).as_deref() {
        Some("BSON") => AuditFormat::Bson,
        _ => AuditFormat::Json,
    };
    let destination = match (name.as_str(), configuration.text(&AUDIT_PATH)) {
        ("file", Some(path)) => AuditDestination::File(LogFile {
            path: path.into(),
            existing: ExistingLog::Append,
            rotation: LogRotation::Rename,
        }),
        ("file", None) => {
            return Err(format!("{}: file needs {}", configuration.name_of(&AUDIT_DESTINATION), AUDIT_PATH.key()));
        }
        (_, Some(_)) => return Err(format!("{} is for a file, not for {name}", configuration.name_of(&AUDIT_PATH))),
        (_, None) if format == AuditFormat::Bson => {
            return Err(format!("{}: BSON is for a file, not for {name}", configuration.name_of(&AUDIT_FORMAT)));
        }
        ("console", None) => AuditDestination::Console,
        _ => AuditDestination::Syslog,
    };
    let filter = configuration.text(&AUDIT_FILTER).map(|text| parse_query(&text)).transpose()?;
    let is_configurable = configuration.is_on(&AUDIT_RUNTIME);
    let fixed = [AUDIT_FILTER, AUDIT_SUCCESSES].into_iter().find(|one| configuration.given(one).is_some());
    if let Some(fixed) = fixed.filter(|_| is_configurable) {
        return Err(format!(
            "{} cannot be set with {}: clients set the cluster parameter auditConfig",
            configuration.name_of(&fixed),
            AUDIT_RUNTIME.key()
        ));
    }
    Ok(Some(AuditSettings { destination, format, filter, is_configurable }))
}
