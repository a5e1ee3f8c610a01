//! Facts from the kernel about this process and its machine. Without `/proc`, facts are missing or zero, never an
//! error.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Bytes in RAM.
    pub resident_bytes: u64,
    /// Bytes of address space.
    pub virtual_bytes: u64,
}

/// Facts that `hostInfo` shows.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Machine {
    pub memory_bytes: u64,
    pub memory_limit_bytes: u64,
    pub cpu_model: String,
    pub cpu_mhz: String,
    pub cpu_features: String,
    pub os_name: String,
    pub kernel: String,
    pub kernel_build: String,
    /// Cores, not counting their hardware threads.
    pub physical_cores: usize,
    pub cpu_sockets: usize,
    pub numa_nodes: usize,
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The rest of the first line that begins with `name` and a colon.
fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// A size in the form `1234 kB`.
fn size_bytes(text: &str, name: &str) -> u64 {
    line(text, name)
        .and_then(|value| value.trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kilobytes| kilobytes * 1024)
}

/// Memory of this process now.
pub fn process_memory() -> ProcessMemory {
    let status = text("/proc/self/status");
    ProcessMemory { resident_bytes: size_bytes(&status, "VmRSS"), virtual_bytes: size_bytes(&status, "VmSize") }
}

/// Processor time that this process has used.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct ProcessTime {
    pub user: Duration,
    pub system: Duration,
}

/// Processor time of this process until now.
/// Source: proc(5), `/proc/[pid]/stat`.
pub fn process_time() -> ProcessTime {
    let stat = text("/proc/self/stat");
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let time = |place| {
        let ticks = fields.split_whitespace().nth(place).and_then(|field| field.parse().ok()).unwrap_or(0);
        Duration::from_millis(ticks_ms(ticks))
    };
    ProcessTime { user: time(11), system: time(12) }
}

/// Processor time of the calling thread; takes a system call. `None` if the kernel gives an invalid time.
pub fn thread_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Converts kernel ticks to milliseconds.
fn ticks_ms(ticks: u64) -> u64 {
    ticks * 1000 / rustix::param::clock_ticks_per_second()
}

/// Processor times since the machine was started, in milliseconds, by their names in FTDC.
/// Source: proc(5), `/proc/stat`.
pub fn processor_times_ms() -> Vec<(&'static str, u64)> {
    const NAMES: [&str; 10] = [
        "user_ms",
        "nice_ms",
        "system_ms",
        "idle_ms",
        "iowait_ms",
        "irq_ms",
        "softirq_ms",
        "steal_ms",
        "guest_ms",
        "guest_nice_ms",
    ];
    let stat = text("/proc/stat");
    let first = stat.lines().next().unwrap_or_default();
    let times = first.split_whitespace().skip(1).map_while(|field| field.parse().ok());
    NAMES.into_iter().zip(times.map(ticks_ms)).collect()
}

/// The machine's memory figures in KiB, by the kernel's names.
/// Source: proc(5), `/proc/meminfo`.
pub fn memory_kb() -> Vec<(String, u64)> {
    let read = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((format!("{}_kb", name.replace(['(', ')'], "_")), value.trim().strip_suffix("kB")?.trim().parse().ok()?))
    };
    text("/proc/meminfo").lines().filter_map(read).collect()
}

/// Page faults of this process that needed the disk.
pub fn page_faults() -> u64 {
    let stat = text("/proc/self/stat");
    // The second field is the program's name in parentheses and may hold anything, so counting begins after it.
    stat.rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(9))
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}

impl Machine {
    /// Reads everything from the kernel on each call, because calls are rare.
    pub fn read() -> Self {
        let memory_bytes = size_bytes(&text("/proc/meminfo"), "MemTotal");
        let cpu = text("/proc/cpuinfo");
        let first = |name| line(&cpu, name).unwrap_or_default().to_owned();
        Self {
            memory_bytes,
            memory_limit_bytes: control_group_limit().unwrap_or(memory_bytes).min(memory_bytes),
            cpu_model: first("model name"),
            cpu_mhz: first("cpu MHz"),
            cpu_features: first("flags"),
            os_name: os_name(),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
            kernel_build: text("/proc/version").trim().to_owned(),
            physical_cores: physical_cores(&cpu),
            cpu_sockets: values(&cpu, "physical id").collect::<BTreeSet<_>>().len().max(1),
            numa_nodes: numa_nodes().max(1),
        }
    }
}

/// The values of all lines that begin with `name` and a colon.
fn values<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let of_line = move |line: &'t str| line.split_once(':').filter(|(key, _)| key.trim() == name);
    text.lines().filter_map(of_line).map(|(_, value)| value.trim())
}

/// Counts cores by socket and core number. If the kernel numbers none, each processor counts as a core.
fn physical_cores(cpu: &str) -> usize {
    let cores: BTreeSet<_> = values(cpu, "physical id").zip(values(cpu, "core id")).collect();
    if cores.is_empty() { values(cpu, "processor").count().max(1) } else { cores.len() }
}

fn numa_nodes() -> usize {
    let Ok(entries) = fs::read_dir("/sys/devices/system/node") else { return 0 };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())).count()
}

/// The memory limit of the cgroup, version 2 or 1; `None` without a limit.
fn control_group_limit() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find(|path| Path::new(path).exists())
        .and_then(|path| text(path).trim().parse().ok())
}

fn os_name() -> String {
    text("/etc/os-release")
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_bytes() {
        let status = "Name:\tbunko\nVmSize:\t    8000 kB\nVmRSS:\t 12 kB\n";
        assert_eq!(size_bytes(status, "VmRSS"), 12 * 1024);
        assert_eq!(size_bytes(status, "VmSize"), 8000 * 1024);
        assert_eq!(size_bytes(status, "VmSwap"), 0);
    }

    #[test]
    fn threads_of_a_core_are_one_core() {
        let cpu = |socket, core| format!("processor : 1\nphysical id : {socket}\ncore id : {core}\n\n");
        assert_eq!(physical_cores(&[cpu(0, 0), cpu(0, 1), cpu(0, 0), cpu(1, 0)].concat()), 3);
        assert_eq!(physical_cores("processor : 0\nprocessor : 1\n"), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        let memory = process_memory();
        assert!(memory.resident_bytes > 0 && memory.virtual_bytes >= memory.resident_bytes);
        assert!(Machine::read().memory_bytes > memory.resident_bytes);
    }
}
