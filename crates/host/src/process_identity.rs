//! Which process an id means: ids are used again after a process has ended.

use std::fs;

/// The machine's name, without white space.
pub fn host_name() -> String {
    word("/proc/sys/kernel/hostname")
}

/// The space of process ids that this process is in: the machine's start and the namespace. Ids of one space can be compared.
pub fn process_space() -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", word("/proc/sys/kernel/random/boot_id"), namespace.display())
}

/// When a process of this space started, in ticks since the machine's start; `None` if there is no such process.
/// Source: proc_pid_stat(5), field 22.
pub fn process_started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn word(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default().trim().replace(char::is_whitespace, "-");
    if text.is_empty() { "unknown".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_started_and_another_id_has_not() {
        let own = std::process::id();
        assert!(process_started(own).is_some_and(|started| started > 0));
        assert_eq!(process_started(own), process_started(own));
        assert_eq!(process_started(u32::MAX), None);
        assert!(!host_name().contains(' ') && process_space().contains("pid:"));
    }
}
