//! Which events are written, and that clients may say so while the server runs: the cluster parameter `auditConfig`.
//!
//! It is kept in `config.clusterParameters`, so that it holds after a restart. A server whose options say which events
//! are written shows that, and takes nothing else.
//! Source: MongoDB manual 8.2, "auditConfig" and "Configure Audit Filters at Runtime".

use super::{Audit, Sink};
use crate::cluster_parameters::{AUDIT_CONFIG, COLLECTION, DATABASE};
use crate::connection::ClientConnection;
use crate::service::Service;
use crate::stored_settings;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::Filter;
use std::sync::atomic::Ordering;

/// Who says which events are written.
pub enum Configuration {
    /// The server's options: all events, or those that a filter lets through (`auditLog.filter`).
    Fixed(Option<DocumentBuf>),
    /// Clients, by `setClusterParameter` (`auditLog.runtimeConfiguration`).
    AtRunTime,
}

/// Which events are written.
#[derive(Default)]
pub(super) struct Choice {
    filter: Option<(DocumentBuf, Filter)>,
}

impl Choice {
    /// Those that a filter lets through; an empty one lets all through.
    /// # Errors
    /// Where it is none.
    pub fn of(filter: DocumentBuf) -> Result<Self> {
        let parsed = Filter::parse(filter.as_ref())?;
        Ok(Self { filter: Some((filter, parsed)) })
    }

    /// Whether an event is written. What a filter cannot be asked of is.
    pub fn includes(&self, event: DocumentRef<'_>) -> bool {
        self.filter.as_ref().is_none_or(|(_, filter)| filter.try_matches(event).unwrap_or(true))
    }
}

impl Audit {
    /// Refuses a change of what is written by another way than the cluster parameter.
    /// # Errors
    /// `BadValue` where clients say by the cluster parameter which events are written.
    pub(super) fn refuse_if_configurable(&self) -> Result<()> {
        match &self.sink {
            Some(sink) if sink.is_configurable => Err(Failure::bad_value(
                "auditAuthorizationSuccess cannot be set with auditLog.runtimeConfiguration: set the cluster parameter \
                 auditConfig",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses to let clients say which events are written.
    /// # Errors
    /// `AuditingNotEnabled`, `RuntimeAuditConfigurationNotEnabled`.
    pub fn check_configurable(&self) -> Result<()> {
        match &self.sink {
            Some(sink) if sink.is_configurable => Ok(()),
            Some(_) => Err(Failure::new(
                ErrorCode::RUNTIME_AUDIT_CONFIGURATION_NOT_ENABLED,
                "the audit log cannot be changed by clients: auditLog.runtimeConfiguration is off",
            )),
            None => Err(Failure::new(
                ErrorCode::AUDITING_NOT_ENABLED,
                "there is no audit log: auditLog.destination is not set",
            )),
        }
    }

    /// What is written now, as the fields of the cluster parameter; `None` where no audit is kept.
    pub fn configuration(&self) -> Option<DocumentBuf> {
        let choice = self.sink.as_ref()?.choice.read();
        let filter = choice.filter.as_ref().map_or(DocumentRef::EMPTY, |(filter, _)| filter.as_ref());
        let successes = self.notes_successes.load(Ordering::Relaxed);
        let filter = ValueRef::Document(filter);
        Some(DocumentBuf::new().with("filter", filter).with("auditAuthorizationSuccess", successes))
    }
}

impl Service {
    /// Has what clients said before the server was started hold again.
    pub(super) fn load_audit_configuration(&self) -> Result<()> {
        let Some(sink) = self.audit.sink.as_ref().filter(|sink| sink.is_configurable) else { return Ok(()) };
        match stored_settings::find(&self.catalog, DATABASE, COLLECTION, AUDIT_CONFIG)? {
            Some(kept) => self.choose_events(sink, kept.as_ref()).map(drop),
            None => Ok(()),
        }
    }

    /// Has the value of the cluster parameter take effect, and notes that, so that nobody switches the log off unnoticed:
    /// the event is written where the choice before or the one from now on has it.
    /// # Errors
    /// Where the filter is none.
    pub(crate) fn configure_audit(&self, connection: &ClientConnection, value: DocumentRef<'_>) -> Result<()> {
        let Some(sink) = &self.audit.sink else { return Ok(()) };
        let previous = self.audit.configuration().unwrap_or_default();
        let before = self.choose_events(sink, value)?;
        let config = self.audit.configuration().unwrap_or_default();
        let param = DocumentBuf::new().with("previous", &previous).with("config", &config);
        let event = self.event(Some(connection), "auditConfigure", &param, 0);
        let is_chosen = before.includes(event.as_ref()) || sink.choice.read().includes(event.as_ref());
        if is_chosen {
            (sink.write)(event.as_ref());
        }
        Ok(())
    }

    /// Has a value hold from now on; the choice before.
    fn choose_events(&self, sink: &Sink, value: DocumentRef<'_>) -> Result<Choice> {
        let filter = value.get("filter").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
        let choice = Choice::of(filter.to_owned())?;
        let before = std::mem::replace(&mut *sink.choice.write(), choice);
        let successes = matches!(value.get("auditAuthorizationSuccess"), Some(ValueRef::Boolean(true)));
        self.audit.notes_successes.store(successes, Ordering::Relaxed);
        Ok(before)
    }
}
