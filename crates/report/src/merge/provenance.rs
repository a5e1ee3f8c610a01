//! Where a merged report's figures come from.

use super::worker::Worker;
use crate::result::{Machine, TargetRecord};

/// The command that repeats the run when given once per worker; `I` stands for the worker's index.
pub(super) fn command(of_first: &[String], count: usize) -> Vec<String> {
    let share = format!("I/{count}");
    let mut command = of_first.to_vec();
    for position in 0..command.len() {
        if command[position].starts_with("--worker=") {
            command[position] = format!("--worker={share}");
        } else if position > 0 && command[position - 1] == "--worker" {
            command[position].clone_from(&share);
        }
    }
    command
}

/// The generators' machines as one. Processors and memory are the smallest worker's: workers may share a machine, which
/// a sum would count twice.
pub(super) fn machine(workers: &[Worker<'_>]) -> Machine {
    let machines = || workers.iter().map(|worker| &worker.report.machine);
    let processors = distinct(machines().map(|machine| machine.processor.as_str()));
    Machine {
        processor: format!("{} generators, each: {processors}", workers.len()),
        cores: machines().map(|machine| machine.cores).min().unwrap_or_default(),
        memory_bytes: machines().map(|machine| machine.memory_bytes).min().unwrap_or_default(),
        kernel: distinct(machines().map(|machine| machine.kernel.as_str())),
    }
}

/// The servers, each as the worker on its machine saw it, if there is one: only that one sees its files.
pub(super) fn targets(workers: &[Worker<'_>]) -> Vec<TargetRecord> {
    let seen_by = |worker: &Worker<'_>, position: usize| worker.report.targets[position].clone();
    let positions = 0..workers[0].report.targets.len();
    positions
        .map(|position| {
            let near = workers.iter().find(|worker| worker.report.targets[position].local);
            let mut target = seen_by(near.unwrap_or(&workers[0]), position);
            // Only that worker may have used a Unix socket.
            let transports = workers.iter().flat_map(|worker| &worker.report.targets[position].transports);
            transports.for_each(|transport| target.add_transport(*transport));
            target
        })
        .collect()
}

/// Each text once, in the order of appearance.
pub(super) fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_every_worker() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(command(&words("bunko bench run x --worker 0/4"), 4).join(" "), "bunko bench run x --worker I/4");
        assert_eq!(command(&words("bunko bench --worker=0/4 run"), 4).join(" "), "bunko bench --worker=I/4 run");
        assert_eq!(distinct(["a", "b", "a"].into_iter()), "a; b");
    }
}
