//! A simulated set: members with model disks and clocks of their own, on a network that delays, loses, repeats and
//! cuts.

use crate::checks::Checks;
use crate::disk::{Disk, Record};
use crate::planted::plant;
use crate::random::Random;
use bunko_replica::{
    Action, Agreement, Body, Bug, Configuration, Event, Lsn, MemberId, Memory, Message, Position, Remembered, Start,
    State, Term, Timing, Vote,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// Periods of the simulated members, shorter than real ones so that more happens.
pub const TIMING: Timing = Timing { heartbeat_ms: 60, election_timeout_ms: 300, span_bytes_max: 5 };
const TICK_MS: u64 = 20;

/// Something that is going to happen.
enum Due {
    Deliver { to: usize, message: Message, bytes: Vec<Record> },
    Tick { node: usize },
    Storage { node: usize, life: u64, done: Storage },
    Reset { node: usize, peer: usize },
    Start { node: usize },
}

enum Storage {
    Vote(Vote),
    Configuration(Configuration),
    Synced(usize),
    Truncated(Position),
}

pub struct Node {
    pub disk: Disk,
    /// None while the member is down.
    pub agreement: Option<Agreement>,
    /// How often the member has started: storage of an earlier life never finishes.
    life: u64,
    /// The member's clock runs at `rate` per mille, and this far ahead.
    pub rate: u64,
    pub ahead: u64,
    /// Whether its files were lost, and when it started last.
    pub memory: Memory,
    started: u64,
    syncing: bool,
    was_primary: bool,
    /// Writes that wait for the commit point.
    waiting: Vec<Lsn>,
    /// Linearizable reads, each with the end of the last write that was acknowledged before it.
    reading: Vec<(u64, Lsn)>,
}

pub struct World {
    pub random: Random,
    pub now: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, Due>,
    sequence: u64,
    pub nodes: Vec<Node>,
    pub checks: Checks,
    /// Pairs whose messages are lost, in one direction.
    pub cuts: HashSet<(usize, usize)>,
    pub loss_percent: u64,
    pub delay_ms: u64,
    pub sync_ms: u64,
    pub span_bytes_max: u64,
    pub bug: Option<Bug>,
    pub trace: bool,
    values: u64,
    pub journaled: bool,
}

impl World {
    /// A set of `nodes` members. The members that are in `configuration` have it stored.
    pub fn new(seed: u64, nodes: usize, configuration: &Configuration) -> Self {
        let mut world = Self {
            random: Random(seed),
            now: 0,
            due: BinaryHeap::new(),
            events: std::collections::HashMap::new(),
            sequence: 0,
            nodes: Vec::new(),
            checks: Checks::default(),
            cuts: HashSet::new(),
            loss_percent: 0,
            delay_ms: 3,
            sync_ms: 3,
            span_bytes_max: TIMING.span_bytes_max,
            bug: None,
            trace: false,
            values: 0,
            journaled: true,
        };
        for node in 0..nodes {
            let known = configuration.member(MemberId(node as u32)).is_some();
            let configuration = if known { configuration.clone() } else { Configuration::default() };
            let disk = Disk::new(configuration);
            let (rate, ahead) = (950 + world.random.below(100), world.random.below(1_000_000));
            world.nodes.push(Node {
                disk,
                agreement: None,
                life: 0,
                rate,
                ahead,
                memory: Memory::Kept,
                started: 0,
                syncing: false,
                was_primary: false,
                waiting: Vec::new(),
                reading: Vec::new(),
            });
            world.at(0, Due::Start { node });
            world.at(world.now + node as u64, Due::Tick { node });
        }
        world
    }

    fn at(&mut self, time: u64, due: Due) {
        self.sequence += 1;
        self.due.push(Reverse((time, self.sequence)));
        self.events.insert(self.sequence, due);
    }

    fn note(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>6} {}", self.now, what());
        }
    }

    /// Lets everything happen that is due until `time`.
    pub fn run_until(&mut self, time: u64) {
        while let Some(&Reverse((at, sequence))) = self.due.peek() {
            if at > time || self.checks.violation.is_some() {
                break;
            }
            self.due.pop();
            self.now = self.now.max(at);
            let due = self.events.remove(&sequence).expect("due once");
            self.happen(due);
        }
        self.now = self.now.max(time);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Deliver { to, message, bytes } => self.step(to, Event::Received(message), &bytes),
            Due::Tick { node } => {
                self.step(node, Event::Tick, &[]);
                self.recall(node);
                self.at(self.now + TICK_MS, Due::Tick { node });
            }
            Due::Storage { node, life, done } if self.nodes[node].life == life => self.stored(node, done),
            Due::Storage { .. } => {}
            Due::Reset { node, peer } => self.step(node, Event::Reset(MemberId(peer as u32)), &[]),
            Due::Start { node } => self.start(node),
        }
    }

    fn stored(&mut self, node: usize, done: Storage) {
        let disk = &mut self.nodes[node].disk;
        let event = match done {
            Storage::Vote(vote) => {
                disk.vote = vote;
                Event::VoteSaved(vote)
            }
            Storage::Configuration(configuration) => {
                let stamp = configuration.stamp();
                disk.configuration = configuration;
                Event::ConfigurationKept(stamp)
            }
            Storage::Synced(count) => {
                disk.sync(count);
                self.nodes[node].syncing = false;
                return self.log_moved(node);
            }
            Storage::Truncated(to) => {
                let with_intent = self.bug != Some(Bug::TruncationWithoutIntent);
                disk.truncate(to.end as usize, with_intent);
                Event::Truncated { end: to.end }
            }
        };
        self.step(node, event, &[]);
    }

    fn start(&mut self, node: usize) {
        let (seed, clock) = (self.random.below(u64::MAX), self.clock(node));
        let Node { disk, agreement, life, memory, started, .. } = &mut self.nodes[node];
        if agreement.is_some() {
            return;
        }
        *life += 1;
        *started = self.now;
        if !disk.is_sound() {
            return self.checks.violate(|| format!("member {node} finds a mixture of two logs"));
        }
        let start = Start {
            memory: *memory,
            id: MemberId(node as u32),
            seed,
            timing: Timing { span_bytes_max: self.span_bytes_max, ..TIMING },
            journaled_majority: self.journaled,
            vote: disk.vote,
            configuration: disk.configuration.clone(),
            terms: disk.terms(),
            log_start: 0,
            log_end: disk.written(),
            committed: 0,
        };
        let mut member = Agreement::new(start, clock);
        plant(&mut member, self.bug);
        *agreement = Some(member);
        self.note(|| format!("{node} starts"));
    }

    pub fn crash(&mut self, node: usize, down_ms: u64) {
        if self.nodes[node].agreement.take().is_none() {
            return;
        }
        let known = &mut self.nodes[node];
        known.disk.crash(&mut self.random);
        known.life += 1;
        known.syncing = false;
        known.was_primary = false;
        known.waiting.clear();
        known.reading.clear();
        self.note(|| format!("{node} crashes, and keeps {}", self.nodes[node].disk.written()));
        self.at(self.now + down_ms, Due::Start { node });
        for peer in (0..self.nodes.len()).filter(|&peer| peer != node) {
            if self.random.chance(70) {
                let delay = self.random.below(10);
                self.at(self.now + delay, Due::Reset { node: peer, peer: node });
            }
        }
    }

    /// Gives the first member records with which the set begins, all of term 1.
    pub fn begin_with(&mut self, records: usize) {
        let disk = &mut self.nodes[0].disk;
        (0..records as u64).for_each(|value| disk.append(1, value));
        disk.sync(records);
        disk.vote = Vote { term: 1, candidate: Some(MemberId(0)) };
    }

    /// Whether nothing has been decided since the set began with data of its first member, as that one knows.
    fn begins(&self) -> bool {
        self.nodes[0].agreement.as_ref().is_some_and(|first| {
            let (base, position) = (first.configuration().base, first.position());
            base > 0 && position == Position { term: first.term(), end: base }
        })
    }

    /// A member crashes and loses its files. Another one gives it the configuration. All others must remember, and have
    /// all that is committed without it; where a set begins, any number of members may lose the nothing that they have.
    pub fn wipe(&mut self, node: usize, down_ms: u64) {
        let all = &self.nodes;
        let is_lost = |other: &Node| other.memory != Memory::Kept;
        let configuration = all[(node + 1) % all.len()].disk.configuration.clone();
        let is_only_copy = configuration.commit_quorum() == 1 && !configuration.members[node].arbiter;
        let others_remember = !all.iter().any(is_lost) || self.begins() && node != 0;
        if all.len() == 1 || is_only_copy || !others_remember || all[node].agreement.is_none() {
            return;
        }
        self.crash(node, down_ms);
        self.nodes[node].disk = Disk::new(configuration);
        self.nodes[node].memory = Memory::Lost;
        self.note(|| format!("{node} has lost its files"));
    }

    /// Tells a member that has lost its files what the others remember, once it can reach enough of them.
    fn recall(&mut self, node: usize) {
        let Node { agreement: Some(own), started, .. } = &self.nodes[node] else { return };
        if own.memory() != Memory::Lost || self.now < started + 2 * TIMING.election_timeout_ms {
            return;
        }
        let mut answers = Vec::new();
        for voter in own.configuration().voters().filter(|voter| voter.id != own.id()) {
            let other = voter.id.0 as usize;
            let is_cut = self.cuts.contains(&(node, other)) || self.cuts.contains(&(other, node));
            let Some(agreement) = self.nodes[other].agreement.as_ref().filter(|_| !is_cut) else { continue };
            if agreement.memory() == Memory::Kept && agreement.configuration().stamp() == own.configuration().stamp() {
                answers.push(Remembered { term: agreement.term(), position: agreement.position() });
            }
        }
        if let Some(recalled) = own.configuration().recalled(&answers) {
            self.step(node, Event::Recalled(recalled), &[]);
        }
    }

    fn clock(&self, node: usize) -> u64 {
        self.now * self.nodes[node].rate / 1000 + self.nodes[node].ahead
    }

    /// Hands an event to a member, and carries out its actions and all that follow from them at once.
    pub fn step(&mut self, node: usize, event: Event, bytes: &[Record]) {
        let clock = self.clock(node);
        let mut actions = Vec::new();
        let Some(agreement) = &mut self.nodes[node].agreement else { return };
        if self.trace && !matches!(event, Event::Tick) {
            println!("{:>6} {node} <- {event:?}", self.now);
        }
        agreement.step(clock, event, &mut actions);
        for action in actions {
            if self.checks.violation.is_none() {
                self.act(node, action, bytes);
            }
        }
    }

    fn act(&mut self, node: usize, action: Action, bytes: &[Record]) {
        if self.trace && !matches!(action, Action::Send { .. }) {
            println!("{:>6} {node} -> {action:?}", self.now);
        }
        let id = MemberId(node as u32);
        match action {
            Action::Send { to, message } => self.post(node, to.0 as usize, &message),
            Action::SaveVote(vote) => self.store(node, Storage::Vote(vote)),
            Action::Keep(configuration) => {
                self.store(node, Storage::Configuration(Configuration::clone(&configuration)));
            }
            Action::BecomePrimary { term } => {
                self.checks.elected(id, term, &self.nodes[node].disk.records);
                self.nodes[node].was_primary = true;
                self.append(node, term, 0);
            }
            Action::StepDown { .. } => {
                self.nodes[node].waiting.clear();
                self.nodes[node].reading.clear();
            }
            Action::Append { from, to } => {
                let fits = self.nodes[node].disk.written() == from && to - from == bytes.len() as u64;
                if fits && !self.is_vote_awaited(node) {
                    for record in bytes {
                        self.nodes[node].disk.records.push(*record);
                        self.appended(node);
                    }
                    self.log_moved(node);
                }
            }
            Action::Truncate(to) => self.store(node, Storage::Truncated(to)),
            Action::Committed(end) => self.committed(node, end),
            Action::ReadConfirmed { token, at } => {
                let reading = &mut self.nodes[node].reading;
                if let Some(index) = reading.iter().position(|&(known, _)| known == token) {
                    let (_, at_least) = reading.swap_remove(index);
                    self.checks.linearizable_read(id, at, at_least);
                }
            }
            Action::Remembered => self.nodes[node].memory = Memory::Kept,
            Action::Resync { .. } => self.checks.violate(|| format!("{node} needs an initial sync")),
            Action::Fatal(fatal) => self.checks.violate(|| format!("{node} stops: {fatal:?}")),
            Action::PauseWrites | Action::ResumeWrites | Action::ReadRefused { .. } | Action::Refused(_) => {}
        }
    }

    /// Whether records must wait until a vote is stored. Members always let them wait; the model does so only where a set begins,
    /// because nothing else relies on it.
    fn is_vote_awaited(&self, node: usize) -> bool {
        let Node { disk, agreement, .. } = &self.nodes[node];
        let logged = disk.records.last().map_or(0, |record| record.term);
        agreement.as_ref().is_some_and(|own| own.configuration().base > 0 && own.term() > disk.vote.term.max(logged))
    }

    fn committed(&mut self, node: usize, end: Lsn) {
        let Node { disk, agreement, waiting, .. } = &mut self.nodes[node];
        let agreement = agreement.as_ref().expect("it acts");
        self.checks.committed(agreement.id(), agreement.term(), end, &disk.records);
        if agreement.state() == State::Primary {
            waiting.retain(|&write| {
                if write <= end {
                    self.checks.acknowledged(write);
                }
                write > end
            });
        }
    }

    /// Stores in order, as the member must.
    fn store(&mut self, node: usize, done: Storage) {
        let life = self.nodes[node].life;
        let delay = self.sync_ms;
        self.at(self.now + delay, Due::Storage { node, life, done });
    }

    fn post(&mut self, from: usize, to: usize, message: &Message) {
        let bytes = match message.body {
            Body::Span { from: at, to, .. } => self.nodes[from].disk.records[at.end as usize..to as usize].to_vec(),
            _ => Vec::new(),
        };
        if to >= self.nodes.len() || self.cuts.contains(&(from, to)) || self.random.chance(self.loss_percent) {
            return;
        }
        let copies = if self.random.chance(2) { 2 } else { 1 };
        for _ in 0..copies {
            let mut delay = self.random.below(self.delay_ms + 1);
            if self.random.chance(2) {
                delay += self.random.below(500);
            }
            let due = Due::Deliver { to, message: message.clone(), bytes: bytes.clone() };
            self.at(self.now + delay, due);
        }
    }

    fn append(&mut self, node: usize, term: Term, value: u64) {
        self.nodes[node].disk.append(term, value);
        self.appended(node);
        self.log_moved(node);
    }

    /// Checks the record that was appended, and tells the agreement if it begins a term.
    fn appended(&mut self, node: usize) {
        let disk = &self.nodes[node].disk;
        let (at, record) = disk.last();
        let begins = disk.begins_term(at as usize);
        self.checks.appended(MemberId(node as u32), at, &record);
        if begins && self.checks.violation.is_none() {
            self.step(node, Event::TermBegan { term: record.term, at }, &[]);
        }
    }

    fn log_moved(&mut self, node: usize) {
        let Node { disk, syncing, .. } = &mut self.nodes[node];
        let (written, synced) = (disk.written(), disk.synced as Lsn);
        if synced < written && !*syncing {
            *syncing = true;
            let life = self.nodes[node].life;
            let delay = 1 + self.random.below(self.sync_ms * 2);
            self.at(self.now + delay, Due::Storage { node, life, done: Storage::Synced(written as usize) });
        }
        self.step(node, Event::LogMoved { written, synced }, &[]);
    }

    /// A client writes at a member, if the member's gate lets it.
    pub fn write(&mut self, node: usize) -> bool {
        let Node { disk, agreement, was_primary, .. } = &self.nodes[node];
        let Some(agreement) = agreement else { return false };
        let mut term = agreement.writable_term();
        let follows = agreement.state() == State::Secondary;
        if term.is_none() && self.bug == Some(Bug::AppendByOldPrimary) && *was_primary && follows {
            term = disk.records.last().map(|record| record.term);
        }
        let Some(term) = term else { return false };
        self.values += 1;
        let written = disk.written() + 1;
        self.nodes[node].waiting.push(written);
        self.append(node, term, self.values);
        true
    }

    /// A client asks a member for a linearizable read and a majority read.
    pub fn read(&mut self, node: usize) {
        self.values += 1;
        let token = self.values;
        let Node { disk, agreement, reading, .. } = &mut self.nodes[node];
        let Some(agreement) = agreement else { return };
        self.checks.majority_read(agreement.id(), agreement.majority_read_at(), &disk.records);
        if agreement.state() == State::Primary {
            reading.push((token, self.checks.acknowledged));
            self.step(node, Event::Read { token }, &[]);
        }
    }

    pub fn primary(&self) -> Option<usize> {
        let is_primary = |node: &usize| {
            self.nodes[*node].agreement.as_ref().is_some_and(|agreement| agreement.writable_term().is_some())
        };
        let term = |node: &usize| self.nodes[*node].agreement.as_ref().map(Agreement::term);
        (0..self.nodes.len()).filter(is_primary).max_by_key(term)
    }

    pub fn agreement(&self, node: usize) -> &Agreement {
        self.nodes[node].agreement.as_ref().expect("the member is up")
    }
}
