//! The price of agreement on the primary's hot path; run on request, in a release build:
//! `cargo test --release -p bunko-replica --test all speed -- --ignored --nocapture`.

use crate::simulator::set;
use bunko_replica::{Action, Agreement, Body, Event, MemberId, Memory, Message, Position, Start, Terms, Timing, Vote};
use std::time::Instant;

#[test]
#[ignore = "prints a figure"]
fn speed() {
    let configuration = set("PSS");
    let start = Start {
        memory: Memory::Kept,
        id: MemberId(0),
        seed: 1,
        timing: Timing::default(),
        journaled_majority: true,
        vote: Vote::default(),
        configuration,
        terms: Terms::new(),
        log_start: 0,
        log_end: 0,
        committed: 0,
    };
    let mut agreement = Agreement::new(start, 0);
    let mut actions = Vec::new();
    agreement.step(0, Event::Campaign, &mut actions);
    agreement.step(0, Event::VoteSaved(Vote { term: 1, candidate: Some(MemberId(0)) }), &mut actions);
    let stamp = agreement.configuration().stamp();
    let from = |member, body| Event::Received(Message { from: MemberId(member), term: 1, configuration: stamp, body });
    agreement.step(0, from(1, Body::VoteAnswer { granted: true }), &mut actions);
    agreement.step(0, Event::ConfigurationKept(stamp), &mut actions);
    agreement.step(0, Event::TermBegan { term: 1, at: 0 }, &mut actions);
    let (rounds, mut committed) = (1_000_000_u64, 0);
    for _ in 0..3 {
        let begin = Instant::now();
        let first = agreement.position().end + 1;
        for end in first..first + rounds {
            actions.clear();
            agreement.step(0, Event::LogMoved { written: end, synced: end }, &mut actions);
            let position = Position { term: 1, end };
            for member in [1, 2] {
                let fetch = Body::Fetch { position, synced: end, round: 0, searching: false };
                agreement.step(0, from(member, fetch), &mut actions);
            }
            committed += actions.iter().filter(|action| matches!(action, Action::Committed(_))).count() as u64;
        }
        println!("{} ns for each span with two followers", begin.elapsed().as_nanos() as u64 / rounds);
    }
    assert_eq!(committed, 3 * rounds);
}
