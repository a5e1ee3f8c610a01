//! The cgroups that limit this process.

use crate::mount_table::{self, Mount};
use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup controller: a resource that cgroups limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// A cgroup that this process is in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    mount_point: PathBuf,
    directory: PathBuf,
}

impl Group {
    /// Finds this process's group for that controller, in v1 or v2; `None` where none is visible.
    pub fn of_this_process(controller: Controller) -> Option<Self> {
        Self::find(controller, &fs::read_to_string("/proc/self/cgroup").ok()?, &mount_table::mounts())
    }

    /// The group's directory and its ancestors: each level may set a limit, for example the container's and the pod's.
    pub fn levels(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|level| level.starts_with(&self.mount_point))
    }

    /// Finds the group. In a hybrid hierarchy a controller is in v1 or in v2, never in both: a line of v1 that names it
    /// decides.
    /// Source: cgroups(7), `/proc/pid/cgroup`.
    fn find(controller: Controller, memberships: &str, mounts: &[Mount]) -> Option<Self> {
        let name = controller.name();
        let path_where = |holds: &dyn Fn(&str) -> bool| {
            memberships.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                holds(controllers).then_some(path)
            })
        };
        let is_v1 = |mount: &&Mount| mount.kind == "cgroup" && mount.options.iter().any(|option| option == name);
        if let Some(path) = path_where(&|controllers| controllers.split(',').any(|controller| controller == name)) {
            return Some(Self::at(mounts.iter().find(is_v1)?, path));
        }
        let path = path_where(&str::is_empty)?;
        Some(Self::at(mounts.iter().find(|mount| mount.kind == "cgroup2")?, path))
    }

    /// The group at `path` of a mount. A container may see its group as the root of the mount, yet be told its path on
    /// the host.
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
        Group::find(Controller::Cpu, memberships, &mount_table::parse(mounts)).map(|group| group.directory)
    }

    #[test]
    fn the_cpu_controller_of_a_mixed_hierarchy_is_v1() {
        let memberships = "4:memory:/process_api/91a1\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/service\n0::/\n";
        assert_eq!(directory(memberships, HYBRID_MOUNTS), Some("/sys/fs/cgroup/cpu/service".into()));
        // A line of v1 names the controller, but it is mounted nowhere.
        assert_eq!(Group::find(Controller::Memory, memberships, &mount_table::parse(HYBRID_MOUNTS)), None);
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
}
