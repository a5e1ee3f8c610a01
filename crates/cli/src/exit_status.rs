//! Exit statuses, with the reasons that `--help` and docs/reference/exit-statuses.md show.

use std::fmt::Write as _;

/// A status, and when a process ends with it.
#[derive(Clone, Copy)]
pub struct ExitStatus {
    pub number: u8,
    when: &'static str,
}

const fn status(number: u8, when: &'static str) -> ExitStatus {
    ExitStatus { number, when }
}

/// As mongod's for a wrong configuration, and clap's for wrong flags.
pub const WRONG_CONFIGURATION: ExitStatus = status(2, "a flag or the configuration file is wrong");
/// As mongod's after an abrupt end.
pub const ABRUPT: ExitStatus = status(
    14,
    "a write or sync of the log failed, or operations did not end within ten seconds of a shutdown; the next start \
     recovers",
);
/// As mongod's `NonExistentPath`.
pub const MISSING_PATH: ExitStatus = status(100, "the directory above the data directory is missing");
/// The status that a shell reports for a program that Ctrl-C ended.
pub const INTERRUPTED_TOOL: ExitStatus = status(130, "SIGINT or SIGTERM, and no orderly end within a second");
/// The lab's figures cannot be used.
pub const NOT_VALID: ExitStatus = status(
    2,
    "the figures are not valid or exceed a limit of the scenario, the run was interrupted, or it broke off; find-max: \
     no rate met the objective; history: the newest change is for the worse; a wrong command line",
);

/// The statuses of `bunko serve`.
pub const OF_SERVE: &[ExitStatus] = &[
    status(0, "an orderly end"),
    status(1, "it did not start, or could not close in order; standard error says why"),
    WRONG_CONFIGURATION,
    ABRUPT,
    MISSING_PATH,
];

/// The statuses of `bunko dump` and `bunko restore`.
pub const OF_TOOLS: &[ExitStatus] = &[
    status(0, "everything was dumped, restored or verified"),
    status(
        1,
        "something failed or was refused, the server did not answer for --server-timeout, or SIGINT or SIGTERM ended \
         the tool in order; standard error says what",
    ),
    status(2, "a flag is unknown, lacks its value, or excludes another flag"),
    INTERRUPTED_TOOL,
];

/// The statuses of `bunko ping`.
pub const OF_PING: &[ExitStatus] = &[
    status(0, "the server answered"),
    status(1, "it did not answer in time, or refused; standard error says why"),
    status(2, "a flag or the connection string is wrong"),
];

/// The statuses of `bunko bench`.
pub const OF_BENCH: &[ExitStatus] = &[
    status(0, "the figures are valid, or valid with cautions"),
    status(1, "nothing could be measured: the scenario, the server or a file is at fault; one line says which"),
    NOT_VALID,
    status(INTERRUPTED_TOOL.number, "Ctrl-C, twice, or once and no orderly end within 5 s"),
];

/// The end of a command's `--help`.
pub fn help(statuses: &[ExitStatus]) -> String {
    statuses.iter().fold("Exit statuses:".to_owned(), |mut text, status| {
        let _ = write!(text, "\n  {:>3}  {}", status.number, status.when);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{Table, check_table};

    #[test]
    fn the_handbook_has_every_status() {
        for (page, name, statuses) in [
            ("reference/exit-statuses.md", "statuses of serve", OF_SERVE),
            ("reference/exit-statuses.md", "statuses of the tools", OF_TOOLS),
            ("reference/exit-statuses.md", "statuses of ping", OF_PING),
            ("lab/README.md", "statuses of bench", OF_BENCH),
        ] {
            let mut table = Table::new(&["Status", "When"]);
            for status in statuses {
                table.push([status.number.to_string(), status.when.to_owned()]);
            }
            check_table(page, name, &table);
        }
    }
}
