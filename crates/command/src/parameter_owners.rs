//! The server as the owner of values that parameters show and set.

use crate::service::Service;
use bunko_access::Mechanism;
use bunko_authority::MECHANISMS;
use bunko_catalog::Catalog;
use bunko_errors::{Failure, Result};
use bunko_session::sessions::{SESSION_TIMEOUT_MINUTES, SESSIONS_MAX};
use bunko_settings::{AtStart, ConnectionPace, Owners, Parameters};
use std::sync::atomic::AtomicI32;
use std::time::Duration;

impl Owners for Service {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn pace(&self) -> &ConnectionPace {
        &self.pace
    }

    fn at_start(&self) -> AtStart<'_> {
        AtStart {
            accepts_test_commands: self.fail_points.are_allowed(),
            tls_mode: &self.process.tls_mode,
            session_timeout_minutes: SESSION_TIMEOUT_MINUTES,
            sessions_max: SESSIONS_MAX,
        }
    }

    fn iterations(&self, mechanism: Mechanism) -> &AtomicI32 {
        self.authority.access.iterations(mechanism)
    }

    fn login_delay(&self) -> Duration {
        self.authority.access.failure_delay()
    }

    fn set_login_delay(&self, delay: Duration) {
        self.authority.access.set_failure_delay(delay);
    }

    fn mechanisms(&self) -> Vec<&'static str> {
        self.authority.access.mechanisms()
    }

    fn set_mechanisms(&self, names: &str) -> Result<()> {
        let known = |name: &str| MECHANISMS.into_iter().find(|known| *known == name);
        let chosen: Option<Vec<_>> =
            names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(known).collect();
        let chosen = chosen.filter(|chosen| !chosen.is_empty()).ok_or_else(|| {
            let all = MECHANISMS.join(", ");
            Failure::not_supported_yet(&format!("authenticationMechanisms: '{names}', which is not made of {all},"))
        })?;
        self.authority.access.set_mechanisms(chosen);
        Ok(())
    }

    fn is_bypass_closed(&self) -> bool {
        self.authority.access.is_bypass_closed()
    }

    fn close_bypass(&self) {
        self.authority.access.close_bypass();
    }

    fn audits_successes(&self) -> bool {
        self.authority.audit.chooses_successes()
    }

    fn set_audits_successes(&self, are_events: bool) -> Result<()> {
        self.authority.audit.choose_successes(are_events)
    }

    fn is_log_redacted(&self) -> bool {
        self.log_lines.is_redacted()
    }

    fn set_log_redacted(&self, is_redacted: bool) {
        self.log_lines.set_redacted(is_redacted);
    }
}
