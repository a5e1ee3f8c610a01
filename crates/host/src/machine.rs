//! Processor, memory and kernel of this machine.

use rustix::system::{sysinfo, uname};
use std::fs;

/// A machine, in the words that a report prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name, or its architecture where it has none.
    pub processor: String,
    /// Processors that this process may use, CPU quotas considered.
    pub cores: usize,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel release: `Linux 6.12.0`.
    pub kernel: String,
}

/// The machine that this process runs on.
pub fn machine() -> Machine {
    let (names, memory) = (uname(), sysinfo());
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Machine {
        processor: parse_processor(&cpuinfo).unwrap_or_else(|| names.machine().to_string_lossy().into_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory.totalram * u64::from(memory.mem_unit),
        kernel: format!("{} {}", names.sysname().to_string_lossy(), names.release().to_string_lossy()),
    }
}

/// The name of the first processor; ARM kernels give none.
fn parse_processor(cpuinfo: &str) -> Option<String> {
    let name = |line: &str| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned());
    cpuinfo.lines().find_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_a_name_except_on_arm() {
        let x86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n";
        assert_eq!(parse_processor(x86).as_deref(), Some("AMD EPYC"));
        assert_eq!(parse_processor("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = machine();
        assert!(!machine.processor.is_empty());
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.kernel.starts_with("Linux "), "{machine:?}");
    }
}
