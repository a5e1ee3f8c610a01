//! The server as the owner of values that parameters show and set.

use crate::service::Service;
use bunko_authority::Authority;
use bunko_catalog::Catalog;
use bunko_session::sessions::{SESSION_TIMEOUT_MINUTES, SESSIONS_MAX};
use bunko_settings::{AtStart, ConnectionPace, Owners, Parameters};

impl Owners for Service {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn authority(&self) -> &Authority {
        &self.authority
    }

    fn pace(&self) -> &ConnectionPace {
        &self.pace
    }

    fn at_start(&self) -> AtStart<'_> {
        AtStart {
            accepts_test_commands: self.fail_points.are_allowed(),
            tls_mode: &self.process.tls_mode,
            trace_endpoint: &self.process.trace_endpoint,
            session_timeout_minutes: SESSION_TIMEOUT_MINUTES,
            sessions_max: SESSIONS_MAX,
        }
    }

    fn limit_query_statistics(&self) {
        let bytes_max = self.parameters.query_statistics.bytes_max(self.facts.memory_limits.server.bytes_max());
        self.query_statistics.shrink(bytes_max);
    }

    fn is_log_redacted(&self) -> bool {
        self.log_lines.is_redacted()
    }

    fn set_log_redacted(&self, is_redacted: bool) {
        self.log_lines.set_redacted(is_redacted);
    }
}
