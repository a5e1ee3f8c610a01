//! CPU use of the whole machine.

use crate::ticks::duration_of_ticks;
use std::fs;
use std::time::Duration;

/// CPU time of all processors together since the machine started; clock ticks of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    /// Time in which processors worked: user, nice, system, interrupts.
    pub busy: Duration,
    /// Time in which processors were idle, including waits for devices.
    pub idle: Duration,
    /// Time in which the hypervisor ran another machine although this one had work.
    pub stolen: Duration,
}

impl MachineCpu {
    /// Reads `/proc/stat`; `None` if there is none.
    pub fn read() -> Option<Self> {
        parse_stat(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Time that passed between two readings, for each kind.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        // The kernel's idle and iowait counters may step back a little.
        Self {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

/// Fields: `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest times are part of user and
/// nice.
/// Source: proc_stat(5).
fn parse_stat(stat: &str) -> Option<MachineCpu> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks.as_slice() else { return None };
    Some(MachineCpu {
        busy: duration_of_ticks(user + nice + system + irq + softirq),
        idle: duration_of_ticks(idle + iowait),
        stolen: duration_of_ticks(steal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_processors_is_split_in_three() {
        let stat = "cpu  754718 48788 225435 1324532 11772 0 29815 4966 0 0\n\
            cpu0 357543 25600 108465 687102 3792 0 14703 2459 0 0\nintr 8688 0\n";
        let expected = MachineCpu {
            busy: duration_of_ticks(754_718 + 48_788 + 225_435 + 29_815),
            idle: duration_of_ticks(1_324_532 + 11_772),
            stolen: duration_of_ticks(4_966),
        };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("cpu  1 2 3\n"), None);
        assert_eq!(parse_stat("intr 1\n"), None);
    }

    #[test]
    fn a_counter_that_stepped_back_is_no_time() {
        let at = |busy, idle| MachineCpu {
            busy: Duration::from_secs(busy),
            idle: Duration::from_secs(idle),
            stolen: Duration::ZERO,
        };
        assert_eq!(at(7, 9).since(at(5, 10)), at(2, 0));
    }

    #[test]
    fn this_machine_has_been_busy() {
        assert!(MachineCpu::read().is_some_and(|cpu| cpu.busy > Duration::ZERO));
    }
}
