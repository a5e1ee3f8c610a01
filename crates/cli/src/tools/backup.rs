//! `bunko backup`.

use super::connection::{Opened, ReportArguments, ServerArguments};
use super::restore_backup::{place, try_out};
use crate::printed::print_line;
use crate::stop;
use bunko_backup::{BackupOptions, FollowOptions, Keep, Place, back_up, follow, list, rekey, verify};
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
    /// The directory of backups, which is made if it is missing, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR or s3://")]
    to: PathBuf,
    /// Encrypt the backups with the first key of this file, and decrypt with any: 32 bytes in base64 or hexadecimal on each line
    #[arg(long = "key-file", value_name = "FILE")]
    key_file: Option<PathBuf>,
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
    /// Where --verify makes its scratch directory, which it removes [default: beside the backups; in TMPDIR if they are in S3]
    #[arg(long, value_name = "DIR", requires = "verify")]
    scratch: Option<PathBuf>,
    /// Encrypt the keys of all backups anew with the first key of --key-file; the data stay as they are
    #[arg(long, requires = "key_file", conflicts_with_all = WITHOUT_SERVER, conflicts_with_all = ["list", "verify"])]
    rekey: bool,
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
        let place = self.place()?;
        match (self.list, self.verify, self.rekey) {
            (true, _, _) => self.list(&place),
            (_, true, _) => self.verify(&place),
            (_, _, true) => self.rekey(&place),
            _ => self.back_up(place),
        }
    }

    fn place(&self) -> Result<Place, String> {
        place(&self.to, self.key_file.as_deref())
    }

    fn back_up(&self, to: Place) -> Result<ExitCode, String> {
        let clock = Clock::machine();
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

    fn list(&self, place: &Place) -> Result<ExitCode, String> {
        for listed in list(place).map_err(|error| error.to_string())? {
            if self.report.is_json() {
                print_line(format_args!("{}", serde_json::to_string(&listed).unwrap_or_default()))?;
            } else {
                print_line(format_args!("{listed}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn rekey(&self, place: &Place) -> Result<ExitCode, String> {
        let (wrapped, key) = rekey(place).map_err(|error| error.to_string())?;
        self.report.print_note(&format!("{wrapped} keys of backups were encrypted anew; all are with the key {key}"));
        Ok(ExitCode::SUCCESS)
    }

    fn verify(&self, place: &Place) -> Result<ExitCode, String> {
        let stop = stop::on_signal(stop::TOOL_GRACE);
        let damaged = verify(place, &|line| eprintln!("bunko: {line}"), &stop).map_err(|error| error.to_string())?;
        if damaged > 0 {
            return Err(format!("{place}: {damaged} damaged files"));
        }
        self.report.print_note("all files are whole");
        if list(place).map_err(|error| error.to_string())?.is_empty() {
            return Err(format!("{place}: there is no backup"));
        }
        let scratch = self.make_scratch(place)?;
        try_out(place, &scratch.path().join("data"), &self.report)?;
        self.report.print_note("the newest moment was restored, and a server starts on it");
        Ok(ExitCode::SUCCESS)
    }

    /// A directory that is removed when it is dropped.
    fn make_scratch(&self, place: &Place) -> Result<tempfile::TempDir, String> {
        let directory = self.scratch.as_deref().or(place.beside()).map_or_else(std::env::temp_dir, Path::to_owned);
        let made = tempfile::Builder::new().prefix("bunko-verify-").tempdir_in(&directory);
        made.map_err(|error| format!("no scratch directory in {}: {error}", directory.display()))
    }
}
