//! Random runs: members crash, clocks jump, the network fails, the configuration changes, while clients write and read.

use crate::number;
use crate::world::World;
use bunko_replica::{Agreement, Bug, Configuration, Event, Force, MemberConfiguration, MemberId, State};

/// The sets that are tried: data members and arbiters.
const SHAPES: [&str; 8] = ["PSS", "PSA", "PSSA", "PSSAA", "PAA", "PSSSS", "PS", "P"];
/// How long faults go on, and how long the set then has to recover, in milliseconds.
const FAULTS_MS: u64 = 8_000;
const RECOVERY_MS: u64 = 6_000;

pub fn set(shape: &str) -> Configuration {
    let member = |(id, letter)| {
        let id = MemberId(id as u32);
        if letter == 'A' { MemberConfiguration::arbiter(id) } else { MemberConfiguration::data(id) }
    };
    Configuration { version: 1, term: 1, base: 0, label: 0, members: shape.chars().enumerate().map(member).collect() }
}

/// The kinds of faults; in the last ones members campaign without having been asked for.
const KINDS_OF_FAULTS: u64 = 18;
const KINDS_WITHOUT_CAMPAIGNS: u64 = 13;

/// The result of a run.
pub struct Run {
    pub violation: Option<String>,
    pub acknowledgements: u64,
    pub reads: u64,
    pub elections: u64,
}

pub fn run(seed: u64, bug: Option<Bug>, trace: bool) -> Run {
    let shape = SHAPES[seed as usize % SHAPES.len()];
    let changes = (seed / 8).is_multiple_of(2);
    let mut configuration = set(shape);
    if (seed / 16).is_multiple_of(2) {
        configuration.members[0].priority = 2000;
    }
    // Members beyond the configuration may be added by a change.
    let spare = if changes { 2 } else { 0 };
    let mut world = World::new(seed, shape.len() + spare, &configuration);
    world.bug = bug;
    world.trace = trace;
    world.sync_ms = 1 + world.random.below(20);
    world.delay_ms = 1 + world.random.below(20);
    world.span_bytes_max = 1 + world.random.below(5);
    let nodes = world.nodes.len() as u64;
    // A member that has lost its files asks the voters of one configuration.
    let wipes = !changes && (seed / 32).is_multiple_of(2);
    let (mut next_fault, mut next_write) = (500, 0);
    while world.now < FAULTS_MS && world.checks.violation.is_none() {
        let time = next_fault.min(next_write);
        world.run_until(time);
        if time == next_fault {
            next_fault += 20 + world.random.below(400);
            fault(&mut world);
            if wipes && world.random.chance(25) {
                let (node, down) = (world.random.below(nodes) as usize, world.random.below(300));
                world.wipe(node, down);
            }
            if changes && world.random.chance(60) {
                change(&mut world);
            }
        } else {
            next_write += 1 + world.random.below(30);
            let node = world.random.below(nodes) as usize;
            for _ in 0..=world.random.below(3) {
                world.write(node);
            }
            let node = world.random.below(nodes) as usize;
            world.read(node);
        }
    }
    recover(&mut world);
    finished(world)
}

fn finished(world: World) -> Run {
    Run {
        acknowledgements: world.checks.acknowledgements,
        reads: world.checks.reads,
        elections: world
            .nodes
            .iter()
            .filter_map(|node| node.agreement.as_ref())
            .map(Agreement::term)
            .max()
            .unwrap_or(0),
        violation: world.checks.violation,
    }
}

/// A set that begins with data of its first member, whose other members lose their files again and again before and after
/// they have joined. Returns whether the set has a primary in the end, too.
fn run_new_set(seed: u64, trace: bool) -> (Run, bool) {
    let shape = SHAPES[seed as usize % (SHAPES.len() - 1)];
    let mut configuration = set(shape);
    configuration.base = 2;
    let mut world = World::new(seed, shape.len(), &configuration);
    world.begin_with(2);
    world.trace = trace;
    world.sync_ms = 1 + world.random.below(20);
    world.delay_ms = 1 + world.random.below(20);
    let nodes = world.nodes.len() as u64;
    let pause = 20 + world.random.below(1_500);
    let kinds = if (seed / 8).is_multiple_of(2) { KINDS_OF_FAULTS } else { KINDS_WITHOUT_CAMPAIGNS };
    while world.now < FAULTS_MS && world.checks.violation.is_none() {
        let pause = world.random.below(pause);
        world.run_until(world.now + pause);
        if world.random.chance(50) {
            fault_of(&mut world, kinds);
        }
        for _ in 0..world.random.below(nodes) {
            // The first member may be the only one that has the data.
            let (node, down) = (1 + world.random.below(nodes - 1) as usize, world.random.below(300));
            world.wipe(node, down);
        }
        for node in 0..nodes as usize {
            world.write(node);
            world.read(node);
        }
    }
    world.cuts.clear();
    world.loss_percent = 0;
    world.run_until(FAULTS_MS + RECOVERY_MS);
    // The first member cannot know what a campaign in its new term has decided that all others have forgotten.
    let has_begun = world.primary().is_some();
    if has_begun {
        recover(&mut world);
    }
    (finished(world), has_begun)
}

fn fault(world: &mut World) {
    fault_of(world, KINDS_OF_FAULTS);
}

/// A fault of one of the first kinds.
fn fault_of(world: &mut World, kinds: u64) {
    let count = world.nodes.len() as u64;
    let node = world.random.below(count) as usize;
    let down = world.random.below(900);
    match world.random.below(kinds) {
        0..=2 => world.crash(node, down),
        // The primary is the member whose crash matters most.
        3 => {
            if let Some(primary) = world.primary() {
                world.crash(primary, down);
            }
        }
        4 => (0..world.nodes.len()).for_each(|node| world.crash(node, down / 2)),
        5 | 6 => {
            for from in 0..world.nodes.len() {
                for to in 0..world.nodes.len() {
                    if world.random.chance(30) {
                        world.cuts.insert((from, to));
                    }
                }
            }
        }
        // One member is cut off, in one direction or in both.
        7 => {
            let (out, back) = (world.random.chance(70), world.random.chance(70));
            for other in 0..world.nodes.len() {
                if out {
                    world.cuts.insert((node, other));
                }
                if back {
                    world.cuts.insert((other, node));
                }
            }
        }
        8 | 9 => world.cuts.clear(),
        10 => world.loss_percent = world.random.below(30),
        11 => world.nodes[node].ahead += world.random.below(2_000),
        12 => {
            let event = Event::StepDown { to: None, wait_ms: 100, freeze_ms: 300, force: Force::No };
            world.step(node, event, &[]);
        }
        13 => world.step(node, Event::Campaign, &[]),
        14 | 15 => contest(world),
        _ => primary_for_a_moment(world),
    }
}

/// Two members campaign in the same moment, and a third one crashes while it votes.
fn contest(world: &mut World) {
    let count = world.nodes.len() as u64;
    for _ in 0..2 {
        let node = world.random.below(count) as usize;
        world.step(node, Event::Campaign, &[]);
    }
    let pause = world.random.below(2 * (world.sync_ms + world.delay_ms));
    world.run_until(world.now + pause);
    let (voter, down) = (world.random.below(count) as usize, world.random.below(20));
    world.crash(voter, down);
}

/// Members become primary one after the other, and crash before their first record is everywhere.
fn primary_for_a_moment(world: &mut World) {
    for _ in 0..4 {
        let node = world.random.below(world.nodes.len() as u64) as usize;
        world.step(node, Event::Campaign, &[]);
        let pause = world.random.below(4 * (world.sync_ms + world.delay_ms));
        world.run_until(world.now + pause);
        if world.write(node) {
            world.write(node);
            let (pause, down) = (world.random.below(3 * world.sync_ms), 50 + world.random.below(300));
            world.run_until(world.now + pause);
            world.crash(node, down);
        }
    }
}

/// Proposes a change of one member, or of two, which must be refused.
fn change(world: &mut World) {
    let count = world.nodes.len() as u64;
    let node = world.random.below(count) as usize;
    let Some(agreement) = &world.nodes[node].agreement else { return };
    if agreement.state() != State::Primary {
        return;
    }
    let mut next = Configuration::clone(agreement.configuration());
    for _ in 0..=world.random.below(2) {
        let id = MemberId(world.random.below(count) as u32);
        let kind = world.random.below(4);
        let arbiter = next.member(id).is_some_and(|member| member.arbiter);
        match next.members.iter_mut().find(|member| member.id == id) {
            Some(member) if kind == 0 && !arbiter => {
                member.votes = !member.votes;
                member.priority = if member.votes { 1000 } else { 0 };
            }
            Some(_) => next.members.retain(|member| member.id != id),
            // A member that has held a log stays a data member.
            None if kind == 1 && world.nodes[id.0 as usize].disk.records.is_empty() => {
                next.members.push(MemberConfiguration::arbiter(id));
            }
            None => next.members.push(MemberConfiguration::data(id)),
        }
    }
    world.step(node, Event::Propose { configuration: next, force: Force::No }, &[]);
    if world.random.chance(30) {
        // The other members do not hear of the new configuration.
        for other in (0..world.nodes.len()).filter(|&other| other != node) {
            world.cuts.insert((node, other));
            world.cuts.insert((other, node));
        }
        world.write(node);
    }
}

/// Ends all faults. Then there is one primary, all logs are equal, and all is committed.
fn recover(world: &mut World) {
    world.cuts.clear();
    world.loss_percent = 0;
    world.run_until(FAULTS_MS + RECOVERY_MS);
    let Some(primary) = world.primary() else {
        return world.checks.violate(|| "no primary after all faults have ended".to_owned());
    };
    if !world.write(primary) {
        return;
    }
    world.run_until(FAULTS_MS + RECOVERY_MS + 1_500);
    if world.checks.violation.is_some() {
        // Nothing happens any more, so a member may be down.
        return;
    }
    let log = world.nodes[primary].disk.records.clone();
    for member in world.nodes[primary].disk.configuration.clone().members {
        let node = member.id.0 as usize;
        let (records, committed) = (&world.nodes[node].disk.records, world.agreement(node).committed());
        let done = *records == log && committed == log.len() as u64;
        let (have, all) = (records.len(), log.len());
        if !done && !member.arbiter {
            world.checks.violate(|| format!("{node} has {have} of {all} records, {committed} committed"));
        }
    }
}

#[test]
fn a_new_set_whose_members_are_emptied_loses_nothing_and_begins() {
    if let Some(seed) = number("SEED") {
        assert_eq!(run_new_set(seed, true).0.violation, None);
        return;
    }
    let seeds = number("SEEDS").unwrap_or(200);
    let (mut acknowledgements, mut begun) = (0, 0);
    for seed in 0..seeds {
        let (run, has_begun) = run_new_set(seed, false);
        assert_eq!(run.violation, None, "seed {seed}");
        acknowledgements += run.acknowledgements;
        begun += u64::from(has_begun);
    }
    assert!(acknowledgements > 1_000, "{acknowledgements}");
    assert!(begun * 4 > seeds * 3, "{begun} of {seeds}");
}

#[test]
fn simulator() {
    if let Some(seed) = number("SEED") {
        let run = run(seed, None, true);
        assert_eq!(run.violation, None);
        return;
    }
    let (mut acknowledgements, mut reads, mut elections) = (0, 0, 0);
    for seed in 0..number("SEEDS").unwrap_or(200) {
        let run = run(seed, None, false);
        if let Some(violation) = run.violation {
            panic!(
                "seed {seed}: {violation}\nAlone: SEED={seed} cargo test -p bunko-replica --test all simulator -- --nocapture"
            );
        }
        acknowledgements += run.acknowledgements;
        reads += run.reads;
        elections += run.elections;
    }
    println!("{acknowledgements} acknowledged writes, {reads} linearizable reads, {elections} terms");
    assert!(acknowledgements > 0 && reads > 0 && elections > 0);
}
