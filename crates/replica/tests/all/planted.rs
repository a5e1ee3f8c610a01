//! Each planted bug makes some run of the simulator fail.

use crate::number;
use crate::simulator::{run, set};
use crate::world::World;
use bunko_replica::{Agreement, Bug, Event, State};

/// Maximum number of random runs until a bug must have been found.
const SEEDS_MAX: u64 = 2_000;
/// Maximum number of runs of a story until it must have found its bug: only the order within a few milliseconds varies.
const TELLINGS_MAX: u64 = 100;

/// Plants a bug in a member; release builds have none.
pub fn plant(member: &mut Agreement, bug: Option<Bug>) {
    #[cfg(debug_assertions)]
    if let Some(bug) = bug {
        member.plant(bug);
    }
    #[cfg(not(debug_assertions))]
    assert_eq!((member.id(), bug), (member.id(), None));
}

/// A story that is too rare for random runs.
type Story = fn(u64, Option<Bug>) -> Option<String>;

const STORIES: [(Bug, Story); 2] =
    [(Bug::UnsyncedVote, a_voter_forgets), (Bug::CommitEarlierTerm, three_primaries_in_turn)];

#[test]
fn every_planted_bug_is_found() {
    let only = std::env::var("BUG").ok();
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        if only.as_ref().is_some_and(|only| *only != format!("{bug:?}")) {
            continue;
        }
        let seed = number("SEED");
        let found = match STORIES.iter().find(|(known, _)| *known == bug) {
            Some((_, story)) => (0..TELLINGS_MAX).find_map(|seed| Some((seed, story(seed, Some(bug))?))),
            None => seed.map_or(0..SEEDS_MAX, |seed| seed..seed + 1).find_map(|number| {
                let violation = run(number, Some(bug), seed.is_some()).violation?;
                Some((number, violation))
            }),
        };
        match found {
            Some((seed, violation)) => println!("{bug:?}: seed {seed}: {violation}"),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, [], "not found");
}

#[test]
fn the_stories_end_well_without_the_bugs() {
    for (bug, story) in STORIES {
        for seed in 0..TELLINGS_MAX {
            assert_eq!(story(seed, None), None, "{bug:?}, seed {seed}");
        }
    }
}

fn three(seed: u64, bug: Option<Bug>) -> World {
    let mut world = World::new(seed, 3, &set("PSS"));
    world.bug = bug;
    world.delay_ms = 0;
    world.sync_ms = 1;
    world.span_bytes_max = 1;
    world.run_until(10);
    world
}

/// A voter crashes before its vote is stored, and is asked by a second candidate of the term.
fn a_voter_forgets(seed: u64, bug: Option<Bug>) -> Option<String> {
    let mut world = three(seed, bug);
    world.cuts.extend([(0, 2), (2, 0)]);
    world.step(0, Event::Campaign, &[]);
    // From now on, storing takes longer than the voter lives.
    world.sync_ms = 50;
    world.run_until(world.now + 3);
    world.crash(1, 0);
    world.sync_ms = 1;
    world.run_until(world.now + 1);
    world.step(2, Event::Campaign, &[]);
    world.run_until(world.now + 20);
    world.checks.violation
}

/// Members 0, 2 and 0 again are primary in turn. The last one gives an old record to a majority, but not yet a record
/// of its own term; then member 2, which has a newer term in its log, wins.
fn three_primaries_in_turn(seed: u64, bug: Option<Bug>) -> Option<String> {
    let mut world = three(seed, bug);
    world.step(0, Event::Campaign, &[]);
    world.run_until(100);
    for other in [1, 2] {
        world.cuts.extend([(0, other), (other, 0)]);
    }
    world.write(0);
    world.run_until(world.now + 5);
    world.crash(0, 30);
    world.step(2, Event::Campaign, &[]);
    world.run_until(world.now + 1);
    // Member 1 has been asked for its vote, and gets nothing of the log.
    world.cuts.insert((2, 1));
    world.run_until(world.now + 10);
    world.crash(2, 3_000);
    world.cuts.clear();
    while world.now < 2_000 && world.nodes[0].agreement.as_ref().is_none_or(|known| known.state() != State::Primary) {
        world.run_until(world.now + 1);
    }
    world.sync_ms = 30;
    for _ in 0..200 {
        world.run_until(world.now + 1);
        if world.checks.committed.len() == 2 {
            break;
        }
    }
    world.crash(0, 60_000);
    world.crash(1, 1);
    world.sync_ms = 1;
    world.run_until(world.now + 6_000);
    world.checks.violation
}
