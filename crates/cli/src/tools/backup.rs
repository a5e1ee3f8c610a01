//! `bunko backup`.

use super::connection::{Opened, ReportArguments, ServerArguments};
use super::restore_backup::try_out;
use crate::printed::print_line;
use crate::stop;
use bunko_backup::{BackupOptions, FollowOptions, Keep, back_up, follow, list, refuse_stores, verify};
use bunko_host::Clock;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Advice for the user of a backup whose server is gone.
const AGAIN: &str = "; the files that were copied are not copied again by the next backup";

/// Flags of `bunko backup`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct BackupArguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    report: ReportArguments,
    /// The directory of backups, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Keep running after the backup, and archive the server's log
    #[arg(long, conflicts_with = "dbpath")]
    follow: bool,
    /// How many seconds the archive may be behind the server
    #[arg(long, value_name = "SECONDS", default_value = "5", requires = "follow")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: u32,
    /// Make a new backup when the last one is this many hours old
    #[arg(long = "image-every", value_name = "HOURS", default_value = "24", requires = "follow")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=8760))]
    image_every: u32,
    /// Keep this many of the last backups, and remove older ones that --keep-daily does not keep
    #[arg(long = "keep-last", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_last: Option<u64>,
    /// Keep the last backup of each of this many days, and remove others that --keep-last does not keep
    #[arg(long = "keep-daily", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_daily: Option<u64>,
    /// Print the backups and the times that they can be restored to; contact no server, write nothing
    #[arg(long, conflicts_with_all = WITHOUT_SERVER)]
    list: bool,
    /// Check all files, restore the newest moment into a scratch directory, start on it and check all collections
    #[arg(long, conflicts_with_all = WITHOUT_SERVER, conflicts_with = "list")]
    verify: bool,
    /// Where --verify makes its scratch directory, which it removes [default: beside the backups]
    #[arg(long, value_name = "DIR", requires = "verify")]
    scratch: Option<PathBuf>,
    /// Not supported yet
    #[arg(long, hide = true, value_name = "KEY", num_args = 0..=1, default_missing_value = "")]
    encrypt: Option<String>,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Flags that have no effect without a server.
const WITHOUT_SERVER: [&str; 7] = ["uri", "config", "host", "dbpath", "follow", "keep_last", "keep_daily"];

impl BackupArguments {
    /// Makes, follows, lists or checks backups.
    /// # Errors
    /// One line for the user.
    pub fn run(&self) -> Result<ExitCode, String> {
        if self.encrypt.is_some() {
            return Err(
                "--encrypt: encrypted backups are not supported yet: encrypt the disk, or pipe a dump through age"
                    .into(),
            );
        }
        refuse_stores(&self.to).map_err(|error| error.to_string())?;
        match (self.list, self.verify) {
            (true, _) => self.list(),
            (_, true) => self.verify(),
            _ => self.back_up(),
        }
    }

    fn back_up(&self) -> Result<ExitCode, String> {
        let (clock, to) = (Clock::machine(), self.to.clone());
        let keep = Keep { last: self.keep_last, daily: self.keep_daily };
        let tell = |line: &str| self.report.print_note(line);
        if self.follow {
            let opened = self.server.open_to_follow()?;
            let hours = u64::from(self.image_every);
            let (interval, image_every) =
                (Duration::from_secs(self.interval.into()), Duration::from_secs(hours * 3600));
            let options = FollowOptions { to, interval, image_every, keep, clock };
            let outcome = follow(opened.server(), &options, &tell, &stop::on_signal(stop::LAB_GRACE));
            return opened.close(outcome.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string()));
        }
        let opened: Opened = self.server.open_to_read(None, AGAIN)?;
        let options = BackupOptions { to, keep, clock };
        let outcome = back_up(opened.server(), &options, &tell, &stop::on_signal(stop::TOOL_GRACE));
        opened.close(outcome.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string()))
    }

    fn list(&self) -> Result<ExitCode, String> {
        for listed in list(&self.to).map_err(|error| error.to_string())? {
            if self.report.is_json() {
                print_line(format_args!("{}", serde_json::to_string(&listed).unwrap_or_default()))?;
            } else {
                print_line(format_args!("{listed}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn verify(&self) -> Result<ExitCode, String> {
        let stop = stop::on_signal(stop::TOOL_GRACE);
        let damaged = verify(&self.to, &|line| eprintln!("bunko: {line}"), &stop).map_err(|error| error.to_string())?;
        if damaged > 0 {
            return Err(format!("{}: {damaged} damaged files", self.to.display()));
        }
        self.report.print_note("all files are whole");
        if list(&self.to).map_err(|error| error.to_string())?.is_empty() {
            return Err(format!("{}: there is no backup", self.to.display()));
        }
        let scratch = self.make_scratch()?;
        try_out(&self.to, &scratch.path().join("data"), &self.report)?;
        self.report.print_note("the newest moment was restored, and a server starts on it");
        Ok(ExitCode::SUCCESS)
    }

    /// A directory that is removed when it is dropped.
    fn make_scratch(&self) -> Result<tempfile::TempDir, String> {
        let beside = self.to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = self.scratch.as_deref().unwrap_or(beside);
        let made = tempfile::Builder::new().prefix("bunko-verify-").tempdir_in(directory);
        made.map_err(|error| format!("no scratch directory in {}: {error}", directory.display()))
    }
}
