//! An exhaustive search: all orders of campaigns, deliveries, writes, syncs, crashes and changes of the configuration
//! in small sets, up to a budget of each. Messages may be lost, and overtake each other; a crash takes all that is not
//! synced. There is no clock: members campaign at any time and ask for votes at once.

use crate::checks::Checks;
use crate::disk::{Disk, Record};
use crate::number;
use crate::planted::plant;
use crate::simulator::set;
use bunko_replica::{
    Action, Agreement, Body, Bug, Configuration, Event, Force, Lsn, MemberId, Memory, Message, Start, State, Timing,
};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How often each thing may happen on one path.
#[derive(Clone, Copy, Hash)]
struct Budget {
    campaigns: u32,
    writes: u32,
    crashes: u32,
    changes: u32,
    /// Messages on their way; the oldest is lost beyond them.
    messages: usize,
}

#[derive(Clone, Copy)]
enum Step {
    Campaign(usize),
    Deliver(usize),
    Write(usize),
    Sync(usize),
    Crash(usize),
    /// The primary removes this member.
    Remove(usize, usize),
}

#[derive(Clone)]
struct Set {
    members: Vec<Agreement>,
    disks: Vec<Disk>,
    network: VecDeque<(usize, Message, Vec<Record>)>,
    budget: Budget,
    checks: Checks,
    bug: Option<Bug>,
}

impl Set {
    fn new(configuration: &Configuration, budget: Budget, bug: Option<Bug>) -> Self {
        let count = configuration.members.len();
        let disks = vec![Disk::new(configuration.clone()); count];
        let members = (0..count).map(|member| start(member, &disks[member], bug)).collect();
        Self { members, disks, network: VecDeque::new(), budget, checks: Checks::default(), bug }
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.members, self.budget).hash(&mut hasher);
        for disk in &self.disks {
            (&disk.records, disk.synced).hash(&mut hasher);
        }
        let mut network: Vec<u64> = Vec::with_capacity(self.network.len());
        for message in &self.network {
            let mut one = DefaultHasher::new();
            message.hash(&mut one);
            network.push(one.finish());
        }
        network.sort_unstable();
        (network, &self.checks.committed).hash(&mut hasher);
        hasher.finish()
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (member, agreement) in self.members.iter().enumerate() {
            if self.budget.campaigns > 0 && agreement.state() == State::Secondary {
                steps.push(Step::Campaign(member));
            }
            if self.budget.writes > 0 && agreement.writable_term().is_some() {
                steps.push(Step::Write(member));
            }
            if self.disks[member].synced < self.disks[member].records.len() {
                steps.push(Step::Sync(member));
            }
            if self.budget.crashes > 0 && agreement.state() != State::Arbiter {
                steps.push(Step::Crash(member));
            }
            if self.budget.changes > 0 && agreement.state() == State::Primary {
                steps.extend((0..self.members.len()).map(|other| Step::Remove(member, other)));
            }
        }
        steps.extend((0..self.network.len()).map(Step::Deliver));
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Campaign(member) => {
                self.budget.campaigns -= 1;
                self.hand(member, Event::Campaign, &[]);
            }
            Step::Deliver(index) => {
                let (to, message, bytes) = self.network.remove(index).expect("on its way");
                self.hand(to, Event::Received(message), &bytes);
            }
            Step::Write(member) => {
                self.budget.writes -= 1;
                let term = self.members[member].term();
                self.disks[member].append(term, u64::from(self.budget.writes) + 1);
                self.appended(member);
                self.moved(member);
            }
            Step::Sync(member) => {
                let count = self.disks[member].records.len();
                self.disks[member].sync(count);
                self.moved(member);
            }
            Step::Crash(member) => {
                self.budget.crashes -= 1;
                let synced = self.disks[member].synced;
                self.disks[member].truncate(synced, true);
                self.members[member] = start(member, &self.disks[member], self.bug);
            }
            Step::Remove(member, other) => {
                self.budget.changes -= 1;
                let mut configuration = Configuration::clone(self.members[member].configuration());
                configuration.members.retain(|known| known.id != MemberId(other as u32));
                // A bug may let a second member go at the same time.
                if self.bug == Some(Bug::TwoVotersAtOnce) {
                    configuration.members.retain(|known| known.id == MemberId(member as u32));
                }
                self.hand(member, Event::Propose { configuration, force: Force::No }, &[]);
            }
        }
    }

    fn hand(&mut self, member: usize, event: Event, bytes: &[Record]) {
        let mut actions = Vec::new();
        self.members[member].step(0, event, &mut actions);
        let id = MemberId(member as u32);
        for action in actions {
            match action {
                Action::Send { to, message } => self.post(member, to.0 as usize, message),
                Action::SaveVote(vote) => {
                    self.disks[member].vote = vote;
                    self.hand(member, Event::VoteSaved(vote), &[]);
                }
                Action::Keep(configuration) => {
                    self.disks[member].configuration = Configuration::clone(&configuration);
                    self.hand(member, Event::ConfigurationKept(configuration.stamp()), &[]);
                }
                Action::BecomePrimary { term } => {
                    self.checks.elected(id, term, &self.disks[member].records);
                    self.disks[member].append(term, 0);
                    self.appended(member);
                    self.moved(member);
                }
                Action::Append { from, .. } if self.disks[member].written() == from => {
                    for record in bytes {
                        self.disks[member].records.push(*record);
                        self.appended(member);
                    }
                    self.moved(member);
                }
                Action::Truncate(to) => {
                    self.disks[member].truncate(to.end as usize, true);
                    self.hand(member, Event::Truncated { end: to.end }, &[]);
                }
                Action::Committed(end) => {
                    let term = self.members[member].term();
                    self.checks.committed(id, term, end, &self.disks[member].records);
                }
                Action::Fatal(fatal) => self.checks.violate(|| format!("{member} stops: {fatal:?}")),
                _ => {}
            }
        }
    }

    fn post(&mut self, from: usize, to: usize, message: Message) {
        let bytes = match message.body {
            Body::Span { from: at, to, .. } => self.disks[from].records[at.end as usize..to as usize].to_vec(),
            _ => Vec::new(),
        };
        let sent = (to, message, bytes);
        if !self.network.contains(&sent) {
            self.network.push_back(sent);
        }
        if self.network.len() > self.budget.messages {
            self.network.pop_front();
        }
    }

    fn appended(&mut self, member: usize) {
        let disk = &self.disks[member];
        let (at, record) = disk.last();
        let begins = disk.begins_term(at as usize);
        self.checks.appended(MemberId(member as u32), at, &record);
        if begins && self.checks.violation.is_none() {
            self.hand(member, Event::TermBegan { term: record.term, at }, &[]);
        }
    }

    fn moved(&mut self, member: usize) {
        let (written, synced) = (self.disks[member].written(), self.disks[member].synced as Lsn);
        self.hand(member, Event::LogMoved { written, synced }, &[]);
    }
}

fn start(member: usize, disk: &Disk, bug: Option<Bug>) -> Agreement {
    let start = Start {
        memory: Memory::Kept,
        id: MemberId(member as u32),
        seed: 0,
        timing: Timing::default(),
        journaled_majority: true,
        vote: disk.vote,
        configuration: disk.configuration.clone(),
        terms: disk.terms(),
        log_start: 0,
        log_end: disk.written(),
        committed: 0,
    };
    let mut agreement = Agreement::new(start, 0);
    plant(&mut agreement, bug);
    agreement
}

/// The states of a search: each is the step that leads to it from an earlier one, so that millions fit into memory.
struct Search {
    root: Set,
    /// The earlier state, and the number of the step among all steps that are possible in that state.
    paths: Vec<(u32, u16)>,
    seen: HashSet<u64>,
}

impl Search {
    fn state(&self, mut index: u32) -> Set {
        let mut steps = Vec::new();
        while index != 0 {
            let (before, step) = self.paths[index as usize];
            steps.push(step);
            index = before;
        }
        let mut state = self.root.clone();
        for step in steps.into_iter().rev() {
            let step = state.steps()[step as usize];
            state.take(step);
        }
        state
    }

    /// Visits up to `states_max` states, the nearest first. Returns whether that was all, and the first violation.
    fn run(&mut self, states_max: usize) -> (bool, Option<String>) {
        let mut next = 0;
        while (next as usize) < self.paths.len() {
            let state = self.state(next);
            for (number, step) in state.steps().into_iter().enumerate() {
                let mut after = state.clone();
                after.take(step);
                if after.checks.violation.is_some() {
                    return (false, after.checks.violation);
                }
                if self.seen.insert(after.key()) {
                    self.paths.push((next, number as u16));
                }
            }
            if self.paths.len() >= states_max {
                return (false, None);
            }
            next += 1;
        }
        (true, None)
    }
}

/// Searches from a set whose member 0 is primary, with its first record everywhere.
fn search(shape: &str, budget: Budget, bug: Option<Bug>, states_max: u64) -> Option<String> {
    let mut root = Set::new(&set(shape), Budget { campaigns: 1, messages: 99, ..budget }, bug);
    root.take(Step::Campaign(0));
    while let Some(step) = root.steps().into_iter().find(|step| matches!(step, Step::Deliver(_) | Step::Sync(_))) {
        root.take(step);
    }
    assert_eq!((root.members[0].state(), root.checks.committed.len()), (State::Primary, 1), "{shape}");
    root.budget = budget;
    let mut search = Search { root, paths: vec![(0, 0)], seen: HashSet::new() };
    let (all, violation) = search.run(states_max as usize);
    println!("{shape} {bug:?}: {} states, {}: {violation:?}", search.paths.len(), if all { "all" } else { "not all" });
    violation
}

const SMALL: Budget = Budget { campaigns: 1, writes: 1, crashes: 1, changes: 0, messages: 3 };

#[test]
fn exhaustive() {
    let states_max = number("STATES").unwrap_or(15_000);
    let changing = Budget { changes: 1, ..SMALL };
    let deep = Budget { campaigns: 2, writes: 2, crashes: 2, changes: 0, messages: 4 };
    let searches = [("PS", SMALL), ("PSS", SMALL), ("PSA", SMALL), ("PSA", changing), ("PSS", changing), ("PSS", deep)];
    for (shape, budget) in searches {
        assert_eq!(search(shape, budget, None, states_max), None, "{shape}");
    }
}

/// The search finds bugs that need few steps.
#[test]
fn exhaustive_search_finds_planted_bugs() {
    let changing = Budget { changes: 1, ..SMALL };
    let contested = Budget { campaigns: 2, ..SMALL };
    let bugs = [
        (Bug::AckBeforeSync, "PSS", SMALL),
        (Bug::DoubleVote, "PSS", contested),
        (Bug::VoteForShorterLog, "PSS", SMALL),
        (Bug::ArbiterCounted, "PSA", SMALL),
        (Bug::TwoVotersAtOnce, "PSS", changing),
        (Bug::ConfigurationBeforeQuorum, "PSA", changing),
    ];
    let states_max = number("STATES").unwrap_or(200_000);
    let missed =
        bugs.into_iter().filter(|&(bug, shape, budget)| search(shape, budget, Some(bug), states_max).is_none());
    let missed: Vec<Bug> = missed.map(|(bug, ..)| bug).collect();
    assert_eq!(missed, []);
}
