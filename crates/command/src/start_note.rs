//! The documents that a start of the server leaves in the data directory: one in `local.startup_log`, and in a new
//! directory the feature compatibility version. The oplog has entries for neither.
//! Source: MongoDB manual 8.2, "The `local` Database", `startup_log`.

use crate::capped_options;
use crate::commands::build_info::append_build;
use crate::service::Service;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::stored_document::{EmptyTimestamps, for_insert};
use bunko_catalog::{CreateOptions, Namespace, Order};
use bunko_errors::Result;
use bunko_expression::ctime_text;
use bunko_operation::OperationContext;
use bunko_query::write::version_document::{ID, VERSIONS};
use bunko_settings::feature_compatibility;

pub(crate) const STARTUP_LOG: &str = "startup_log";
/// Size limit of the log, as in `MongoDB`.
const STARTUP_LOG_BYTES_MAX: i64 = 10 * 1024 * 1024;

impl Service {
    /// Stores the documents of this start. Call it before the first client connects. A server that cannot write,
    /// because its disk is full, starts nevertheless.
    /// Only a server that may write does: the collections of a set of several members are the same on all of them.
    pub fn note_start(&self) {
        if !self.may_write() {
            return;
        }
        if let Err(failure) = self.keep_version_document().and_then(|()| self.log_start()) {
            tracing::warn!(target: "CONTROL", id = 120, ctx = "main", error = %failure, "The start cannot be noted in local.startup_log");
        }
    }

    fn keep_version_document(&self) -> Result<()> {
        let namespace = Namespace::new(feature_compatibility::DATABASE, feature_compatibility::COLLECTION)?;
        let mut found = Vec::new();
        let kept = self.catalog.collection(&namespace);
        let kept = kept.map(|kept| kept.find_latest(ValueRef::String(ID), &mut found)).transpose()?.flatten();
        match kept {
            Some(_) => Ok(()),
            None => self.keep(&namespace, &feature_compatibility::document(VERSIONS[VERSIONS.len() - 1])),
        }
    }

    fn log_start(&self) -> Result<()> {
        let namespace = Namespace::new(Namespace::OPLOG_DATABASE, STARTUP_LOG)?;
        if self.catalog.collection(&namespace).is_none() {
            let options = capped_options::put_into(DocumentRef::EMPTY, Some(STARTUP_LOG_BYTES_MAX), None);
            let create = CreateOptions { options, ..CreateOptions::default() };
            self.catalog.create(&namespace, create, &*OperationContext::unlimited())?;
        }
        self.keep(&namespace, &self.describe_start())
    }

    fn describe_start(&self) -> DocumentBuf {
        let now_ms = self.started_at_ms;
        let hostname = self.facts.host.rsplit_once(':').map_or(&*self.facts.host, |(host, _)| host);
        let mut build = Vec::new();
        let mut writer = Writer::new(&mut build);
        append_build(self, &mut writer);
        writer.end();
        DocumentBuf::new()
            .with("_id", format!("{hostname}-{now_ms}").as_str())
            .with("hostname", hostname)
            .with("startTime", ValueRef::DateTime(now_ms / 1000 * 1000))
            .with("startTimeLocal", ctime_text(now_ms).as_str())
            .with("cmdLine", &self.facts.parsed_options)
            .with("pid", i64::from(std::process::id()))
            .with("buildinfo", &DocumentBuf::from_trusted(build))
    }

    fn keep(&self, namespace: &Namespace, document: &DocumentBuf) -> Result<()> {
        let document = for_insert(document.as_ref(), EmptyTimestamps::Kept, &self.world)?;
        let inserted = self.catalog.insert(namespace, &[document], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.into_iter().map(|(_, failure)| failure).chain(inserted.stopped_by).next().map_or(Ok(()), Err)
    }
}
