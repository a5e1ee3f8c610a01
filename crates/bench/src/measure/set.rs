//! Watches the members of a replica set during a step, and waits afterwards until all have the primary's data.

use crate::clock;
use crate::server::{MemberKind, SetMember, SetProbe};
use bunko_bson::Timestamp;
use bunko_host::ProcessReading;
use bunko_report::result::{Finding, MemberRecord, SetRecord};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often members are asked for their place during a step. A lag is known this exactly.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
/// How often after it.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(2);
/// The lab waits for equal data for so long at most.
const CATCH_UP_MAX: Duration = Duration::from_mins(10);

/// The record of a set during a step.
pub(crate) struct WatchedSet {
    pub record: SetRecord,
    pub finding: Option<Finding>,
}

/// Runs a step beside which the members of a set are watched.
pub(crate) fn watch_set<T>(set: &mut SetProbe, stop: &AtomicBool, work: impl FnOnce() -> T) -> (T, WatchedSet) {
    let before = set.processes();
    let (over, is_over) = mpsc::channel::<()>();
    let (returned, lags, ended) = std::thread::scope(|scope| {
        let set = &mut *set;
        let watched = scope.spawn(move || follow(set, &is_over));
        let returned = work();
        let ended = clock::now();
        drop(over);
        (returned, watched.join().expect("the watch of a set does not panic"), ended)
    });
    let (catch_up, finding) = catch_up(set, ended, stop);
    let used = set.processes().into_iter().zip(before).map(|(now, before)| cpu_seconds(now, before));
    let members = set.members.iter().zip(lags).zip(used).map(|((member, lags), cpu_seconds)| MemberRecord {
        host: member.host.clone(),
        state: member.state.clone(),
        lag_seconds: lags.last.map(|lag| lag.as_secs_f64()),
        longest_lag_seconds: lags.longest.map(|lag| lag.as_secs_f64()),
        cpu_seconds,
    });
    let record = SetRecord { catch_up_seconds: catch_up.map(|time| time.as_secs_f64()), members: members.collect() };
    (returned, WatchedSet { record, finding })
}

fn cpu_seconds(now: Option<ProcessReading>, before: Option<ProcessReading>) -> Option<f64> {
    now.zip(before).map(|(now, before)| now.since(&before).cpu.as_secs_f64())
}

/// Lags of one member.
#[derive(Clone, Copy, Default)]
struct Lags {
    last: Option<Duration>,
    longest: Option<Duration>,
}

/// Asks all members for their places until the step is over, and once more at its end. Returns the lags of each.
fn follow(set: &mut SetProbe, is_over: &mpsc::Receiver<()>) -> Vec<Lags> {
    let mut history = PrimaryHistory::default();
    let mut lags = vec![Lags::default(); set.members.len()];
    loop {
        let is_last = !matches!(is_over.recv_timeout(WATCH_INTERVAL), Err(RecvTimeoutError::Timeout));
        let Some(primary) = set.primary_position() else {
            if is_last {
                // The last lags that were seen are not those at the step's end.
                for lags in &mut lags {
                    lags.last = None;
                }
                return lags;
            }
            continue;
        };
        history.note(clock::now(), primary);
        // `None` once a member does not answer: it may be anywhere, so nothing is forgotten in this round.
        let mut least = Some(primary);
        for (member, lags) in set.members.iter_mut().zip(&mut lags) {
            if member.kind != MemberKind::Follower {
                continue;
            }
            let position = member.position();
            lags.last = position.map(|position| history.lag(position, clock::now()));
            least = least.zip(position).map(|(least, position)| least.min(position));
            lags.longest = lags.longest.max(lags.last);
        }
        if let Some(least) = least {
            history.forget(least);
        }
        if is_last {
            return lags;
        }
    }
}

/// The primary's places, each with the time at which it was first seen.
#[derive(Default)]
struct PrimaryHistory(VecDeque<(Instant, Timestamp)>);

impl PrimaryHistory {
    fn note(&mut self, at: Instant, position: Timestamp) {
        if self.0.back().is_none_or(|(_, last)| *last < position) {
            self.0.push_back((at, position));
        }
    }

    /// For how long the primary has had a write that a member at this place lacks.
    fn lag(&self, position: Timestamp, now: Instant) -> Duration {
        let beyond = self.0.iter().find(|(_, had)| *had > position);
        beyond.map_or(Duration::ZERO, |(since, _)| now.saturating_duration_since(*since))
    }

    /// Forgets places that all members have reached.
    fn forget(&mut self, position: Timestamp) {
        while self.0.front().is_some_and(|(_, had)| *had <= position) {
            self.0.pop_front();
        }
    }
}

/// Waits until all data members have what the primary has. Returns the time since the step's end, or the member that is
/// behind.
fn catch_up(set: &mut SetProbe, ended: Instant, stop: &AtomicBool) -> (Option<Duration>, Option<Finding>) {
    loop {
        let unreachable = |member: &mut SetMember| member.connection().is_none().then(|| member.host.clone());
        if let Some(host) = set.followers().find_map(unreachable) {
            // The lab connects to members at the beginning of a variant.
            return (None, Some(Finding::MembersBehind { detail: format!("{host} cannot be reached") }));
        }
        let Some(primary) = set.primary_position() else {
            // Another member may have taken over, and then this one rolls back writes that no other has.
            let detail = "the primary of the step's beginning is no longer the primary, or does not answer".to_owned();
            return (None, Some(Finding::MembersBehind { detail }));
        };
        let behind = behind(set, primary);
        let waited = clock::since(ended);
        let Some(behind) = behind else { return (Some(waited), None) };
        if waited >= CATCH_UP_MAX || stop.load(Ordering::Relaxed) {
            let detail = format!("{behind} {:.0} s after the step's end", waited.as_secs_f64());
            return (None, Some(Finding::MembersBehind { detail }));
        }
        std::thread::sleep(CATCH_UP_INTERVAL);
    }
}

/// A member that lacks writes up to the primary's place, with words that say so; `None` if none does.
fn behind(set: &mut SetProbe, primary: Timestamp) -> Option<String> {
    let lacks = |member: &mut SetMember| match member.position() {
        Some(position) if position >= primary => None,
        Some(_) => Some(format!("{} had not all writes of the primary", member.host)),
        None => Some(format!("{} did not answer", member.host)),
    };
    set.followers().find_map(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_the_time_since_the_primary_had_a_write_that_a_member_lacks() {
        let (start, second) = (clock::now(), Duration::from_secs(1));
        let place = |increment| Timestamp { seconds: 7, increment };
        let mut history = PrimaryHistory::default();
        for (after, increment) in [(0, 10), (1, 20), (2, 20), (3, 30)] {
            history.note(start + second * after, place(increment));
        }
        let now = start + second * 4;
        assert_eq!(history.lag(place(30), now), Duration::ZERO);
        assert_eq!(history.lag(place(31), now), Duration::ZERO);
        assert_eq!(history.lag(place(20), now), second);
        assert_eq!(history.lag(place(19), now), second * 3);
        history.forget(place(20));
        assert_eq!((history.0.len(), history.lag(place(20), now)), (1, second));
    }
}
