//! The members of a replica set during a step.

use serde::{Deserialize, Serialize};

/// The members of the measured replica set during a step, and their way to equal data after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Time from the step's end until all data members had all of the primary's writes; `None` if the lab did not see
    /// that.
    pub catch_up_seconds: Option<f64>,
    /// The members, in the order of the set's configuration.
    pub members: Vec<MemberRecord>,
}

/// One member of a replica set during a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// `host:port`, as the set's configuration names it.
    pub host: String,
    /// `PRIMARY`, `SECONDARY`, `ARBITER`, ... at the step's beginning.
    pub state: String,
    /// Time for which the primary had had a write at the step's end that this member had not applied; `None` for the
    /// primary, an arbiter, and a member that did not answer.
    pub lag_seconds: Option<f64>,
    /// The longest such time during the step.
    pub longest_lag_seconds: Option<f64>,
    /// User and system time from the step's beginning until all data members were equal, or the lab gave up waiting for
    /// that; `None` where the member is not on this machine.
    pub cpu_seconds: Option<f64>,
}

impl SetRecord {
    /// The lag of the member that was furthest behind at the step's end, in seconds.
    pub fn lag_seconds(&self) -> Option<f64> {
        self.furthest(|member| member.lag_seconds)
    }

    /// The longest lag of any member during the step, in seconds.
    pub fn longest_lag_seconds(&self) -> Option<f64> {
        self.furthest(|member| member.longest_lag_seconds)
    }

    fn furthest(&self, lag: impl Fn(&MemberRecord) -> Option<f64>) -> Option<f64> {
        self.members.iter().filter_map(lag).max_by(f64::total_cmp)
    }
}
