//! Keeps the archive of a server's log: first an image, then the log after it, at most some seconds late.
//!
//! ```text
//!            ┌──── the log is continued ────┐
//! start ──► look ── no archive, or a gap ──► image ──► pull, flush, wait ──► pull ...
//!            ▲                                │              │ the image is old: a new one, while the log is pulled
//!            └──── connection lost ───────────┴──────────────┘
//! ```

use crate::archive::{Archive, Pulled};
use crate::begin_backup::Making;
use crate::manifest::Manifest;
use crate::place::Place;
use crate::retention::{Keep, remove_old};
use crate::source::{Event, Source};
use crate::target::Target;
use crate::{Result, Tell, format_ms};
use bunko_client::ClientError;
use bunko_host::Clock;
use bunko_tools::{Interrupted, Server, ToolError, is_transient};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// The wait after a failure that may pass.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time until an interruption is noticed.
const STEP: Duration = Duration::from_millis(50);
/// Longest time between two looks at the log: a server forgets a reader that is silent for two minutes.
const REST_MAX: Duration = Duration::from_secs(30);
/// Interval at which the lag is reported.
const TELL_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which a failure that lasts is reported again.
const TELL_FAILURE_INTERVAL: Duration = Duration::from_mins(1);
/// The reason of a gap that is found while an image is made.
const CUT_OFF: &str = "the server's log could not be read on there";
/// MongoDB's `ConflictingOperationInProgress`: another reader has an image.
const IN_USE: i32 = 117;
/// MongoDB's `OperationFailed`: the image is over.
const IMAGE_OVER: i32 = 96;

/// An archive to be kept.
pub struct FollowOptions {
    /// The place of the backups.
    pub to: Place,
    /// About the longest time by which the archive lags behind the server, as long as the server can be reached.
    pub interval: Duration,
    /// Age of the last image at which a new one is made.
    pub image_every: Duration,
    /// The backups that are kept.
    pub keep: Keep,
    /// The machine's clock.
    pub clock: Clock,
}

/// Keeps the archive until it is interrupted.
/// # Errors
/// Errors of the files, and of a server that refuses; lost connections are waited for.
pub fn follow(server: &dyn Server, options: &FollowOptions, tell: Tell<'_>, interrupted: &Interrupted) -> Result<()> {
    keep(server, options, tell, interrupted).inspect_err(|error| Source::tell_failure(server, error))
}

fn keep(server: &dyn Server, options: &FollowOptions, tell: Tell<'_>, interrupted: &Interrupted) -> Result<()> {
    let target = Target::open(&options.to)?;
    let owner = target.owner(&options.clock)?;
    let last = target.manifests()?.pop();
    let archive = last.as_ref().map(|last| Archive::resume(&target, last)).transpose()?;
    let mut following = Following {
        server,
        options,
        target: &target,
        tell,
        interrupted,
        made: last,
        since: options.clock.now(),
        archive,
        told: None,
        flushed: None,
    };
    let mut failure = (String::new(), options.clock.now());
    loop {
        let outcome = Source::connect(server, &owner).and_then(|mut source| following.run(&mut source));
        match outcome {
            Ok(()) | Err(ToolError::Interrupted) => {
                Source::tell(server, &owner, Event::Ended);
                return following.end();
            }
            Err(ToolError::Server { cause, .. }) if may_pass(&cause) => {
                following.flush()?;
                let reason = cause.to_string();
                if reason != failure.0 || options.clock.since(failure.1) >= TELL_FAILURE_INTERVAL {
                    tell(&format!("the server cannot be followed, and is tried again: {reason}"));
                    failure = (reason, options.clock.now());
                }
                if following.rest(PAUSE) {
                    return following.end();
                }
            }
            Err(error) => return Err(error),
        }
    }
}

fn may_pass(cause: &ClientError) -> bool {
    let is_over = matches!(cause, ClientError::Command(error) if [IN_USE, IMAGE_OVER].contains(&error.code));
    is_over || is_transient(cause)
}

struct Following<'f> {
    server: &'f dyn Server,
    options: &'f FollowOptions,
    target: &'f Target,
    tell: Tell<'f>,
    interrupted: &'f Interrupted,
    /// The last backup.
    made: Option<Manifest>,
    /// When the last backup was made, or this process began.
    since: Instant,
    archive: Option<Archive<'f>>,
    /// When the lag was last reported.
    told: Option<Instant>,
    /// When the archive was made durable.
    flushed: Option<Instant>,
}

impl Following<'_> {
    /// Follows the server until it is interrupted.
    fn run(&mut self, source: &mut Source) -> Result<()> {
        if self.look(source)? {
            return Ok(());
        }
        if self.archive.is_none() {
            self.make(source)?;
        }
        loop {
            match self.pull(source)? {
                Pulled::More => {}
                Pulled::All => {
                    self.flush()?;
                    self.note_archived(source);
                    if self.rest((self.options.interval / 2).min(REST_MAX)) {
                        return Ok(());
                    }
                }
                Pulled::Gap => {
                    self.note_gap("the server has given its log up there")?;
                    self.make(source)?;
                }
                Pulled::Bypassed => {
                    self.note_gap("documents were loaded there that are not in the log")?;
                    self.make(source)?;
                }
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.is_image_due() {
                self.make(source)?;
            }
        }
    }

    /// Looks whether the server's log continues the archive, which is given up otherwise. Returns whether the wait for an
    /// answer was interrupted.
    /// # Errors
    /// As [`Archive::is_continued`].
    fn look(&mut self, source: &mut Source) -> Result<bool> {
        let mut is_told = false;
        while let Some(archive) = &self.archive {
            match archive.is_continued(source)? {
                Some(true) => break,
                Some(false) => self.note_gap("the server's log does not go on there")?,
                None => {
                    if !is_told {
                        (self.tell)("the server does not know yet that its log is committed, and is waited for");
                        is_told = true;
                    }
                    if self.rest(PAUSE) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// The machine's date may be set back, so the time that this process has run counts too.
    fn is_image_due(&self) -> bool {
        let clock = &self.options.clock;
        let made_ms = self.made.as_ref().map_or(0, |made| made.made_ms);
        let age = Duration::from_millis(clock.now_ms().saturating_sub(made_ms));
        age.max(clock.since(self.since)) >= self.options.image_every
    }

    /// Ends the archive where it is: the next records do not follow it.
    /// # Errors
    /// Errors of the files.
    fn note_gap(&mut self, reason: &str) -> Result<()> {
        self.flush()?;
        if let Some(archive) = self.archive.take() {
            let since = format_ms(archive.durable().complete_ms);
            (self.tell)(&format!(
                "a gap: {reason}. A new image is made; times between {since} and that image cannot be restored"
            ));
        }
        Ok(())
    }

    /// Makes a new image and begins the archive after it. Meanwhile the present archive still grows.
    fn make(&mut self, source: &mut Source) -> Result<()> {
        let (target, tell) = (self.target, self.tell);
        let making = Making {
            server: self.server.name(),
            clock: &self.options.clock,
            target,
            tell,
            interrupted: self.interrupted,
        };
        let (mut last, mut is_over) = (self.archive.take(), false);
        let made = making.image(source, &mut |source| {
            let Some(archive) = last.as_mut().filter(|_| !is_over) else { return Ok(()) };
            match archive.pull(source)? {
                Pulled::More => Ok(()),
                Pulled::All => {
                    archive.flush()?;
                    source.note(Event::Archived(archive.durable().complete_ms));
                    Ok(())
                }
                Pulled::Gap | Pulled::Bypassed => {
                    is_over = true;
                    archive.flush()
                }
            }
        });
        self.archive = last;
        let made = match made {
            Ok(made) => made,
            Err(error) if is_over => return self.note_gap(CUT_OFF).and(Err(error)),
            Err(error) => return self.flush().and(Err(error)),
        };
        // The archive until now may be behind, and the new one has nothing from before the image.
        let reached = match &mut self.archive {
            Some(archive) if !is_over => archive.reach(source, made.end),
            _ => Ok(()),
        };
        self.flush()?;
        if self.archive.as_ref().is_some_and(|archive| archive.durable().end < made.end) {
            self.note_gap(CUT_OFF)?;
        }
        self.archive = Some(Archive::begin(target, &made)?);
        (self.made, self.since) = (Some(made), self.options.clock.now());
        reached?;
        remove_old(target, &self.options.keep, tell)
    }

    /// Asks for more, and makes durable what has waited for long enough.
    fn pull(&mut self, source: &mut Source) -> Result<Pulled> {
        let Some(archive) = &mut self.archive else { return Ok(Pulled::Gap) };
        let pulled = archive.pull(source)?;
        let now = self.options.clock.now();
        let since = *self.flushed.get_or_insert(now);
        if pulled == Pulled::More && now.saturating_duration_since(since) >= self.options.interval / 2 {
            self.flush()?;
        }
        Ok(pulled)
    }

    /// Makes the archive durable, and tells its lag now and then.
    fn flush(&mut self) -> Result<()> {
        let Some(archive) = &mut self.archive else { return Ok(()) };
        archive.flush()?;
        let now = self.options.clock.now();
        self.flushed = Some(now);
        if self.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_INTERVAL) {
            self.told = Some(now);
            self.tell_lag();
        }
        Ok(())
    }

    /// Tells the server up to when the archive is durable.
    fn note_archived(&self, source: &mut Source) {
        if let Some(archive) = &self.archive {
            source.note(Event::Archived(archive.durable().complete_ms));
        }
    }

    fn tell_lag(&self) {
        let Some(archive) = &self.archive else { return };
        let complete_ms = archive.durable().complete_ms;
        let lag_ms = self.options.clock.now_ms().saturating_sub(complete_ms);
        let (seconds, tenths) = (lag_ms / 1000, lag_ms % 1000 / 100);
        (self.tell)(&format!("archived up to {}, {seconds}.{tenths} s behind", format_ms(complete_ms)));
    }

    fn end(mut self) -> Result<()> {
        self.flush()?;
        self.tell_lag();
        Ok(())
    }

    /// Waits. Returns whether it was interrupted.
    fn rest(&self, wait: Duration) -> bool {
        let clock = &self.options.clock;
        let until = clock.now() + wait;
        while clock.now() < until {
            if self.interrupted.load(Ordering::Relaxed) {
                return true;
            }
            thread::sleep(STEP.min(wait));
        }
        self.interrupted.load(Ordering::Relaxed)
    }
}
