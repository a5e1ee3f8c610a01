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
/// The status that a shell reports for a program that wrote to a pipe without a reader.
pub const READER_GONE: ExitStatus =
    status(141, "nothing reads its output any more, and it printed something, or its parent has ended too");
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

/// The statuses of `bunko copy`.
pub const OF_COPY: &[ExitStatus] = &[
    status(0, "everything was copied and is equal; or SIGINT or SIGTERM ended --follow, and the same command goes on"),
    status(
        1,
        "source and target differ, something failed or was refused, a server did not answer for --server-timeout, or a \
         signal ended a run that did not follow; standard error says what",
    ),
    status(2, "a flag is unknown, lacks its value, or excludes another flag"),
    status(INTERRUPTED_TOOL.number, "SIGINT or SIGTERM, and no orderly end within ten seconds"),
];

/// The statuses of `bunko import` and `bunko export`.
pub const OF_TEXT_TOOLS: &[ExitStatus] = &[
    status(
        0,
        "the whole input was read, or all documents were written; inserts that the server refused are reported and counted, \
         and end an import only with --stopOnError or --maintainInsertionOrder",
    ),
    status(
        1,
        "the input could not be read, something failed, the server did not answer for --server-timeout, or SIGINT or \
         SIGTERM ended the tool in order; standard error says what",
    ),
    status(2, "a flag is unknown, lacks its value, or excludes another flag"),
    INTERRUPTED_TOOL,
];

/// The statuses of `bunko backup`.
pub const OF_BACKUP: &[ExitStatus] = &[
    status(
        0,
        "the backup was made, listed or verified; or SIGINT or SIGTERM ended --follow, and all that it reported is durable",
    ),
    status(1, "something failed, was refused or is damaged, or a signal ended another run; standard error says what"),
    status(2, "a flag is unknown, lacks its value, or excludes another flag"),
    status(INTERRUPTED_TOOL.number, "SIGINT or SIGTERM, and no orderly end within some seconds"),
];

/// The statuses of `bunko upgrade`.
pub const OF_UPGRADE: &[ExitStatus] = &[
    status(0, "this version can start on the directory"),
    status(1, "it cannot, or the directory cannot be read; the output says why and what to do"),
    status(2, "a flag is wrong"),
];

/// The statuses of `bunko stat` and `bunko top`.
pub const OF_TABLES: &[ExitStatus] = &[
    status(0, "the last row was shown, SIGINT or SIGTERM came, or nothing reads its output any more"),
    status(1, "no server could be read at the start, or the output could not be written; standard error says why"),
    status(2, "a flag is wrong, excludes another flag, or is not supported"),
];

/// The statuses of `bunko sample`.
pub const OF_SAMPLE: &[ExitStatus] = &[
    status(0, "the data set was loaded, or the data sets were listed"),
    status(
        1,
        "a collection exists already and --drop is missing, the server was not reached, or it refused something; standard \
         error says what",
    ),
    status(2, "a flag is wrong, or there is no such data set"),
];

/// The statuses of `bunko check`.
pub const OF_CHECK: &[ExitStatus] = &[
    status(0, "nothing was found: what was looked at works"),
    status(1, "a server did not answer, or refused to tell what it is; standard error says why"),
    status(2, "a flag or the connection string is wrong"),
    status(3, "something would not work, or could not be looked at; the report names it"),
];

/// The statuses of `bunko advise`.
pub const OF_ADVISE: &[ExitStatus] = &[
    status(0, "there is no advice"),
    status(1, "the server did not answer, or refused to list its databases; standard error says why"),
    status(2, "a flag or the connection string is wrong"),
    status(3, "there is advice, or something could not be looked at; the report names it"),
];

/// The statuses of `bunko ping`.
pub const OF_PING: &[ExitStatus] = &[
    status(0, "the server answered"),
    status(1, "it did not answer in time, or refused; standard error says why"),
    status(2, "a flag or the connection string is wrong"),
];

/// The statuses of `bunko shell`.
pub const OF_SHELL: &[ExitStatus] = &[
    status(0, "all scripts ran, or the user left; quit(N) and exit(N) end with N instead"),
    status(
        1,
        "a script threw, the server was not reached or refused the login, or output could not be written; standard error \
         says why",
    ),
    status(2, "a flag or the address is wrong"),
    status(INTERRUPTED_TOOL.number, "Ctrl-C while a script of the command line or of standard input ran"),
    READER_GONE,
];

/// The statuses of `bunko bench`.
pub const OF_BENCH: &[ExitStatus] = &[
    status(0, "the figures are valid, or valid with cautions"),
    status(1, "nothing could be measured: the scenario, the server or a file is at fault; one line says which"),
    NOT_VALID,
    status(INTERRUPTED_TOOL.number, "Ctrl-C twice, or once without an orderly end within 5 s"),
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
            ("reference/exit-statuses.md", "statuses of copy", OF_COPY),
            ("reference/exit-statuses.md", "statuses of import and export", OF_TEXT_TOOLS),
            ("reference/exit-statuses.md", "statuses of backup", OF_BACKUP),
            ("reference/exit-statuses.md", "statuses of upgrade", OF_UPGRADE),
            ("reference/exit-statuses.md", "statuses of ping", OF_PING),
            ("reference/exit-statuses.md", "statuses of check", OF_CHECK),
            ("reference/exit-statuses.md", "statuses of advise", OF_ADVISE),
            ("reference/exit-statuses.md", "statuses of the tables", OF_TABLES),
            ("reference/exit-statuses.md", "statuses of sample", OF_SAMPLE),
            ("reference/exit-statuses.md", "statuses of the shell", OF_SHELL),
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
