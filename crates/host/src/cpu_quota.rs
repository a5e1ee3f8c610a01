//! How long a quota kept this process from running.

use crate::mount_table::{self, Mount};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the CPU quota of this process's control group, and of those above it, did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// Time that threads of the groups were held back, summed over processors. Grows; two readings are subtracted.
    pub throttled: Duration,
}

impl CpuQuota {
    /// Reads it from cgroup v1 or v2; `None` where there is no quota to be seen.
    pub fn read() -> Option<Self> {
        let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
        let group = Group::find(&memberships, &mount_table::mounts())?;
        // A quota holds at the level where it is set, be it the container's or the pod's above it.
        let levels = group.directory.ancestors().take_while(|level| level.starts_with(&group.mount_point));
        let throttled = levels.filter_map(throttled_in);
        throttled.reduce(|sum, level| sum + level).map(|throttled| Self { throttled })
    }
}

fn throttled_in(group: &Path) -> Option<Duration> {
    parse_throttled(&fs::read_to_string(group.join("cpu.stat")).ok()?)
}

/// Microseconds in v2, nanoseconds in v1.
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

/// The control group that limits this process's CPU time.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    mount_point: PathBuf,
    directory: PathBuf,
}

impl Group {
    /// In a mixed hierarchy a controller is in v1 or in v2, never in both; a line of v1 that names `cpu` decides.
    /// Source: cgroups(7), `/proc/pid/cgroup`.
    fn find(memberships: &str, mounts: &[Mount]) -> Option<Self> {
        let path_where = |holds: fn(&str) -> bool| {
            memberships.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                holds(controllers).then_some(path)
            })
        };
        let is_v1_cpu = |mount: &&Mount| mount.kind == "cgroup" && mount.options.iter().any(|option| option == "cpu");
        if let Some(path) = path_where(|controllers| controllers.split(',').any(|controller| controller == "cpu")) {
            return Some(Self::at(mounts.iter().find(is_v1_cpu)?, path));
        }
        let path = path_where(str::is_empty)?;
        Some(Self::at(mounts.iter().find(|mount| mount.kind == "cgroup2")?, path))
    }

    /// Containers see a group of the host as the root of the mount, but may be told their path on the host.
    fn at(mount: &Mount, path: &str) -> Self {
        let below_root = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        Self { mount_point: mount.point.clone(), directory: mount.point.join(below_root) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_MOUNTS: &str = "\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    fn directory(memberships: &str, mounts: &str) -> Option<PathBuf> {
        Group::find(memberships, &mount_table::parse(mounts)).map(|group| group.directory)
    }

    #[test]
    fn the_cpu_controller_of_a_mixed_hierarchy_is_v1() {
        let memberships = "4:memory:/process_api/91a1\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/service\n0::/\n";
        assert_eq!(directory(memberships, HYBRID_MOUNTS), Some("/sys/fs/cgroup/cpu/service".into()));
    }

    #[test]
    fn v2_has_one_hierarchy() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let memberships = "0::/user.slice/user-1000.slice/session-2.scope\n";
        let expected = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
        assert_eq!(directory(memberships, mounts), Some(expected.into()));
    }

    #[test]
    fn a_container_is_told_its_path_on_the_host() {
        let mounts = "1 0 0:33 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";
        let memberships = "4:cpu,cpuacct:/docker/abc\n";
        assert_eq!(directory(memberships, mounts), Some("/sys/fs/cgroup/cpu,cpuacct/".into()));
        let outside = "1 0 0:33 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(directory("0::/\n", outside), Some("/sys/fs/cgroup/".into()));
    }

    #[test]
    fn nothing_mounted_is_no_quota() {
        assert_eq!(directory("1:cpu:/\n", ""), None);
        assert_eq!(directory("", HYBRID_MOUNTS), None);
    }

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
