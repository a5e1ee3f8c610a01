//! The choice of events to write, and how clients change it while the server runs: the cluster parameter `auditConfig`.
//!
//! The choice is kept in `config.clusterParameters`, so that it holds after a restart. If the server's options choose
//! the events, the parameter shows that choice and cannot be set.
//! Source: MongoDB manual 8.2, "auditConfig" and "Configure Audit Filters at Runtime".

use super::{Audit, Sink};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::Filter;
use std::sync::atomic::Ordering;

/// The source of the choice of events.
pub enum Configuration {
    /// The server's options: all events, or the events that `auditLog.filter` matches.
    Fixed(Option<DocumentBuf>),
    /// Clients, by `setClusterParameter` (`auditLog.runtimeConfiguration`).
    AtRunTime,
}

/// The choice of events to write.
#[derive(Default)]
pub(crate) struct Choice {
    filter: Option<(DocumentBuf, Filter)>,
}

impl Choice {
    /// The events that a filter matches. An empty filter matches all.
    /// # Errors
    /// If the filter is malformed.
    pub fn of(filter: DocumentBuf) -> Result<Self> {
        let parsed = Filter::parse(filter.as_ref())?;
        Ok(Self { filter: Some((filter, parsed)) })
    }

    /// Whether an event is written. An event is also written if evaluating the filter fails.
    pub fn includes(&self, event: DocumentRef<'_>) -> bool {
        self.filter.as_ref().is_none_or(|(_, filter)| filter.try_matches(event).unwrap_or(true))
    }
}

impl Audit {
    /// Refuses to set `auditAuthorizationSuccess` by any other way than the cluster parameter.
    /// # Errors
    /// `BadValue` if clients choose the events with the cluster parameter.
    pub(super) fn refuse_if_configurable(&self) -> Result<()> {
        match &self.sink {
            Some(sink) if sink.is_configurable => Err(Failure::bad_value(
                "auditAuthorizationSuccess cannot be set with auditLog.runtimeConfiguration: set the cluster parameter \
                 auditConfig",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that clients may choose the events.
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

    /// The present choice of events, as the fields of the cluster parameter; `None` without an audit log.
    pub fn configuration(&self) -> Option<DocumentBuf> {
        let choice = self.sink.as_ref()?.choice.read();
        let filter = choice.filter.as_ref().map_or(DocumentRef::EMPTY, |(filter, _)| filter.as_ref());
        let successes = self.notes_successes.load(Ordering::Relaxed);
        let filter = ValueRef::Document(filter);
        Some(DocumentBuf::new().with("filter", filter).with("auditAuthorizationSuccess", successes))
    }

    /// Applies a value from now on. Returns the choice before.
    pub(super) fn choose_events(&self, sink: &Sink, value: DocumentRef<'_>) -> Result<Choice> {
        let filter = value.get("filter").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
        let choice = Choice::of(filter.to_owned())?;
        let before = std::mem::replace(&mut *sink.choice.write(), choice);
        let successes = matches!(value.get("auditAuthorizationSuccess"), Some(ValueRef::Boolean(true)));
        self.notes_successes.store(successes, Ordering::Relaxed);
        Ok(before)
    }
}
