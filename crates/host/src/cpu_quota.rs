//! How long a quota kept this process from running.

use crate::control_group::{Controller, Group};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Effects of the CPU quotas of this process's control group and its ancestors so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// Time that threads of the groups were held back, summed over processors. It only grows: subtract two readings.
    pub throttled: Duration,
}

impl CpuQuota {
    /// Reads the throttled time from cgroup v1 or v2; `None` where no quota is visible.
    pub fn read() -> Option<Self> {
        let group = Group::of_this_process(Controller::Cpu)?;
        let throttled = group.levels().filter_map(throttled_in);
        throttled.reduce(|sum, level| sum + level).map(|throttled| Self { throttled })
    }
}

fn throttled_in(group: &Path) -> Option<Duration> {
    parse_throttled(&fs::read_to_string(group.join("cpu.stat")).ok()?)
}

/// Throttled time in the groups' `cpu.stat`: microseconds in v2, nanoseconds in v1.
/// Source: the kernel's `admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst`.
fn parse_throttled(statistics: &str) -> Option<Duration> {
    statistics.lines().find_map(|line| {
        let (name, number) = line.split_once(' ')?;
        match name {
            "throttled_usec" => Some(Duration::from_micros(number.parse().ok()?)),
            "throttled_time" => Some(Duration::from_nanos(number.parse().ok()?)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_count_in_their_own_unit() {
        let v1 = "nr_periods 12\nnr_throttled 3\nthrottled_time 1500000\nnr_bursts 0\nburst_time 0\n";
        assert_eq!(parse_throttled(v1), Some(Duration::from_micros(1_500)));
        let v2 = "usage_usec 9000\nuser_usec 5000\nsystem_usec 4000\nnr_periods 1\nnr_throttled 1\n\
            throttled_usec 2500\nnr_bursts 0\nburst_usec 0\n";
        assert_eq!(parse_throttled(v2), Some(Duration::from_micros(2_500)));
        let v2_root = "usage_usec 9000\nuser_usec 5000\nsystem_usec 4000\n";
        assert_eq!(parse_throttled(v2_root), None);
    }
}
