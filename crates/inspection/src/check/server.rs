//! The deployment: what kind of server it is, and its settings.

use super::{Check, ConfigurationCheck, Subject, Weight};
use crate::InspectionError;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};

/// Mechanisms by which only MongoDB's servers let users log in.
const FOREIGN_MECHANISMS: [&str; 4] = ["GSSAPI", "PLAIN", "MONGODB-OIDC", "MONGODB-AWS"];

impl Check<'_> {
    /// Looks at the kind of the server, the mechanisms of its users, and its settings.
    pub(super) fn server(&mut self, configuration: Option<&ConfigurationCheck>) -> Result<(), InspectionError> {
        self.report.count(Subject::Server);
        let hello = self.must_answer("hello")?;
        let version = self.must_answer("buildInfo")?;
        text(version.as_ref(), "version").unwrap_or("unknown").clone_into(&mut self.report.version);
        // The field by which Bunko names its own version.
        self.compresses_buckets = version.as_ref().get("bunko").is_none();
        if bunko_client::is_router(hello.as_ref()) {
            let problem = "it is a router of a sharded cluster, and sharding is not supported".to_owned();
            let advice = "Copy the data through the router into one server, if they fit.";
            self.found(Subject::Server, Weight::Refused, "sharding".into(), problem, advice);
        }
        self.mechanisms()?;
        if let Some(judge) = configuration {
            self.settings(judge)?;
        }
        Ok(())
    }

    fn mechanisms(&mut self) -> Result<(), InspectionError> {
        let command = DocumentBuf::new().with("getParameter", 1_i32).with("authenticationMechanisms", 1_i32);
        let reply = match self.source.ask("admin", &command)? {
            Ok(reply) => reply,
            Err(refusal) => {
                self.unknown(Subject::Server, "authenticationMechanisms", &refusal, GRANT);
                return Ok(());
            }
        };
        self.report.count(Subject::Server);
        let list = reply.as_ref().get("authenticationMechanisms").and_then(ValueRef::as_array);
        let named: Vec<_> = list.iter().flat_map(|list| list.iter()).filter_map(ValueRef::as_str).collect();
        for mechanism in FOREIGN_MECHANISMS.into_iter().filter(|mechanism| named.contains(mechanism)) {
            let problem = "users may log in by it there, and cannot here".to_owned();
            let advice = "Give these users passwords (SCRAM) or certificates (MONGODB-X509).";
            self.found(Subject::Server, Weight::Refused, mechanism.into(), problem, advice);
        }
        Ok(())
    }

    fn settings(&mut self, judge: &ConfigurationCheck) -> Result<(), InspectionError> {
        let options = match self.source.ask("admin", &DocumentBuf::new().with("getCmdLineOpts", 1_i32))? {
            Ok(options) => options,
            Err(refusal) => {
                self.unknown(Subject::Server, "settings", &refusal, GRANT);
                return Ok(());
            }
        };
        let parsed = options.as_ref().get("parsed").and_then(ValueRef::as_document);
        for refusal in judge(&parsed.map_or_else(DocumentBuf::new, DocumentRef::to_owned)) {
            let advice = "Leave the setting out, or see docs/reference/settings.md for what to set instead.";
            self.found(Subject::Server, Weight::Refused, "settings".into(), refusal, advice);
        }
        self.report.count(Subject::Server);
        Ok(())
    }

    fn must_answer(&mut self, command: &'static str) -> Result<DocumentBuf, InspectionError> {
        let answer = self.source.ask("admin", &DocumentBuf::new().with(command, 1_i32))?;
        answer.map_err(|refusal| self.source.refused(command, refusal))
    }
}

/// Advice if the server does not let the check look.
pub(super) const GRANT: &str =
    "Run the check with a user who has the roles clusterMonitor, readAnyDatabase and userAdminAnyDatabase.";

/// A string field.
pub(super) fn text<'d>(document: DocumentRef<'d>, name: &str) -> Option<&'d str> {
    document.get(name).and_then(ValueRef::as_str)
}
