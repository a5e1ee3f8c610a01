//! Memory that this process may use.

use crate::control_group::{Controller, Group};
use crate::machine::machine;
use std::fs;
use std::path::Path;

/// Main memory of the machine, or the lowest limit of this process's cgroup and its ancestors if that is less, in
/// bytes.
pub fn usable_memory_bytes() -> u64 {
    let group = Group::of_this_process(Controller::Memory);
    let limit = group.as_ref().and_then(|group| group.levels().filter_map(limit_in).min());
    machine().memory_bytes.min(limit.unwrap_or(u64::MAX))
}

/// Reads the memory limit of a cgroup in bytes; `None` without one. Source: the kernel's `admin-guide/cgroup-v2.rst`
/// and `cgroup-v1/memory.rst`.
fn limit_in(group: &Path) -> Option<u64> {
    ["memory.max", "memory.limit_in_bytes"]
        .iter()
        .find_map(|file| parse_limit(&fs::read_to_string(group.join(file)).ok()?))
}

/// Parses a cgroup's limit in bytes; `None` for `max` (v2, no limit). v1 writes a number above any memory size instead.
fn parse_limit(limit: &str) -> Option<u64> {
    limit.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bytes_or_none() {
        assert_eq!(parse_limit("2147483648\n"), Some(2 << 30));
        assert_eq!(parse_limit("max\n"), None);
        assert!(parse_limit("9223372036854771712\n").is_some_and(|limit| limit > 1 << 60));
    }

    #[test]
    fn a_group_leaves_no_more_than_the_machine_has() {
        assert!((1 << 20..=machine().memory_bytes).contains(&usable_memory_bytes()));
    }

    #[test]
    fn a_level_without_a_limit_is_none() {
        assert_eq!(limit_in(Path::new("/nonexistent")), None);
    }
}
