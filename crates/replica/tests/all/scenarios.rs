//! One story each, on a network without faults.

use crate::random::Random;
use crate::simulator::set;
use crate::world::{TIMING, World};
use bunko_replica::{
    Action, Agreement, Body, Configuration, Event, Fatal, Force, MemberConfiguration, MemberId, Memory, Message,
    Position, Refusal, Refused, Start, State, Terms, Vote,
};

/// A set whose member 0 is primary, with three writes committed.
fn led_by_first(shape: &str) -> World {
    let mut world = World::new(1, shape.len(), &set(shape));
    world.run_until(10);
    world.step(0, Event::Campaign, &[]);
    world.run_until(200);
    assert_eq!(world.primary(), Some(0), "{shape}");
    (0..3).for_each(|_| assert!(world.write(0)));
    world.run_until(400);
    assert_eq!(world.agreement(0).committed(), 4, "{shape}");
    world
}

fn finish(world: &World) {
    assert_eq!(world.checks.violation, None);
}

/// Runs until the condition holds, and says how long that took.
fn wait(world: &mut World, condition: impl Fn(&World) -> bool) -> u64 {
    let begin = world.now;
    while !condition(world) {
        assert!(world.now < begin + 20_000, "the condition never holds");
        world.run_until(world.now + 1);
    }
    world.now - begin
}

#[test]
fn a_broken_connection_elects_at_once() {
    let mut world = led_by_first("PSS");
    world.crash(0, 5_000);
    for peer in [1, 2] {
        world.step(peer, Event::Reset(MemberId(0)), &[]);
    }
    let took = wait(&mut world, |world| world.primary().is_some());
    assert!(took < TIMING.election_timeout_ms / 2, "{took} ms");
    finish(&world);
}

#[test]
fn a_member_that_lost_only_its_own_connection_disturbs_no_other() {
    let mut world = led_by_first("PSS");
    for other in [0, 2] {
        world.cuts.insert((other, 1));
    }
    world.step(1, Event::Reset(MemberId(0)), &[]);
    world.run_until(world.now + 3_000);
    world.cuts.clear();
    world.run_until(world.now + 1_000);
    assert_eq!((world.primary(), world.agreement(0).term()), (Some(0), 1));
    finish(&world);
}

#[test]
fn only_a_member_with_the_base_campaigns() {
    let mut configuration = set("PSS");
    configuration.base = 2;
    let mut world = World::new(1, 3, &configuration);
    world.run_until(20_000);
    assert_eq!(world.primary(), None);
    let start = |end, terms| Start {
        memory: Memory::Kept,
        id: MemberId(0),
        seed: 1,
        timing: TIMING,
        journaled_majority: true,
        vote: Vote::default(),
        configuration: configuration.clone(),
        terms,
        log_start: 0,
        log_end: end,
        committed: 0,
    };
    let mut terms = Terms::new();
    terms.begin(1, 0);
    for (end, is_allowed) in [(1, false), (2, true)] {
        let (mut member, mut actions) = (Agreement::new(start(end, terms.clone()), 0), Vec::new());
        member.step(1, Event::Campaign, &mut actions);
        assert_eq!(member.state() == State::Candidate, is_allowed, "{end}: {actions:?}");
    }
    finish(&world);
}

#[test]
fn members_that_are_emptied_while_the_set_begins_do_not_wait_for_each_other() {
    let mut configuration = set("PSS");
    configuration.base = 2;
    let mut world = World::new(1, 3, &configuration);
    world.begin_with(2);
    for (from, to) in [(0, 1), (0, 2), (1, 0), (2, 0), (1, 2), (2, 1)] {
        world.cuts.insert((from, to));
    }
    world.run_until(10);
    world.wipe(1, 10);
    world.wipe(2, 10);
    world.run_until(5_000);
    assert_eq!((world.agreement(1).memory(), world.agreement(2).memory()), (Memory::Lost, Memory::Lost));
    world.cuts.clear();
    wait(&mut world, |world| world.primary() == Some(0));
    wait(&mut world, |world| world.agreement(0).committed() == 3);
    assert!(world.write(0));
    wait(&mut world, |world| (0..3).all(|node| world.agreement(node).committed() == 4));
    finish(&world);
}

#[test]
fn an_arbiter_elects_the_living_secondary_and_counts_for_no_commit() {
    let mut world = led_by_first("PSA");
    world.crash(1, 3_000);
    world.run_until(world.now + 100);
    (0..50).for_each(|_| assert!(world.write(0)));
    world.run_until(world.now + 1_000);
    assert_eq!((world.primary(), world.agreement(0).committed()), (Some(0), 4));
    world.crash(0, 60_000);
    wait(&mut world, |world| world.primary() == Some(1));
    assert_eq!(world.agreement(2).state(), State::Arbiter);
    finish(&world);
}

#[test]
fn a_primary_without_a_majority_steps_down() {
    let mut world = led_by_first("PSS");
    for other in [1, 2] {
        world.cuts.extend([(0, other), (other, 0)]);
    }
    wait(&mut world, |world| world.agreement(0).state() == State::Secondary);
    wait(&mut world, |world| world.primary().is_some());
    world.cuts.clear();
    world.run_until(world.now + 1_000);
    assert_eq!(world.agreement(0).primary(), world.primary().map(|node| MemberId(node as u32)));
    finish(&world);
}

#[test]
fn a_primary_hands_over_without_waiting_for_a_timeout() {
    let mut world = led_by_first("PSS");
    world.write(0);
    let event = Event::StepDown { to: Some(MemberId(2)), wait_ms: 100, freeze_ms: 60_000, force: Force::No };
    world.step(0, event, &[]);
    assert!(!world.write(0), "writes pause");
    let took = wait(&mut world, |world| world.primary() == Some(2));
    assert!(took < 100, "{took} ms");
    world.run_until(world.now + 500);
    assert_eq!(world.agreement(2).committed(), 6);
    finish(&world);
}

#[test]
fn a_hand_over_without_a_successor_resumes_writes_or_is_forced() {
    for (force, state) in [(Force::No, State::Primary), (Force::Yes, State::Secondary)] {
        let mut world = led_by_first("PSA");
        world.crash(1, 60_000);
        world.write(0);
        world.step(0, Event::StepDown { to: None, wait_ms: 100, freeze_ms: 500, force }, &[]);
        world.run_until(world.now + 200);
        assert_eq!(world.agreement(0).state(), state);
        finish(&world);
    }
}

#[test]
fn a_member_that_is_gone_is_no_successor_of_an_idle_primary() {
    let mut world = led_by_first("PSA");
    world.write(0);
    world.run_until(world.now + 500);
    world.crash(1, 60_000);
    world.run_until(world.now + 1_000);
    world.step(0, Event::StepDown { to: None, wait_ms: 100, freeze_ms: 500, force: Force::No }, &[]);
    world.run_until(world.now + 200);
    assert_eq!(world.agreement(0).state(), State::Primary);
    finish(&world);
}

#[test]
fn a_member_of_higher_priority_takes_over_when_it_has_caught_up() {
    let mut configuration = set("PSS");
    configuration.members[0].priority = 2_000;
    let mut world = World::new(3, 3, &configuration);
    world.run_until(10);
    world.step(1, Event::Campaign, &[]);
    world.run_until(200);
    assert_eq!(world.primary(), Some(1));
    wait(&mut world, |world| world.primary() == Some(0));
    world.run_until(world.now + 3_000);
    assert_eq!((world.primary(), world.agreement(0).term()), (Some(0), 2));
    finish(&world);
}

#[test]
fn a_set_of_one_begins_at_once() {
    let mut world = World::new(1, 1, &set("P"));
    let took = wait(&mut world, |world| world.primary() == Some(0));
    assert!(took < 60, "{took} ms");
    finish(&world);
}

#[test]
fn a_forced_configuration_frees_a_set_that_lost_its_majority() {
    let mut world = led_by_first("PSS");
    world.crash(0, 2_000);
    world.crash(1, 2_000);
    world.run_until(world.now + 1_000);
    let mut alone = Configuration::clone(world.agreement(2).configuration());
    alone.members.retain(|member| member.id == MemberId(2));
    world.step(2, Event::Propose { configuration: alone.clone(), force: Force::No }, &[]);
    world.run_until(world.now + 500);
    assert_eq!(world.primary(), None);
    world.step(2, Event::Propose { configuration: alone, force: Force::Yes }, &[]);
    wait(&mut world, |world| world.primary() == Some(2));
    wait(&mut world, |world| {
        (0..2).all(|node| world.nodes[node].agreement.as_ref().is_some_and(|known| known.state() == State::Removed))
    });
    finish(&world);
}

#[test]
fn a_data_member_votes_only_when_the_new_rule_commits_all() {
    let mut world = led_by_first("PAA");
    let mut next = Configuration::clone(world.agreement(0).configuration());
    next.members.push(MemberConfiguration::data(MemberId(9)));
    let agreement = world.nodes[0].agreement.as_mut().expect("it is up");
    let mut actions = Vec::new();
    agreement.step(0, Event::Propose { configuration: next, force: Force::No }, &mut actions);
    assert_eq!(actions, [Action::Refused(Refused::Propose(Refusal::NotCaughtUp))]);
}

/// The new rule needs a member that the old one did not need. A write between the check and the change would be lost
/// with the old primary if the old rule committed it.
#[test]
fn nothing_is_committed_while_a_configuration_is_stored() {
    let mut configuration = set("PSAA");
    (configuration.members[1].votes, configuration.members[1].priority) = (false, 0);
    let mut world = World::new(1, 4, &configuration);
    world.run_until(10);
    world.step(0, Event::Campaign, &[]);
    world.run_until(200);
    assert!(world.write(0));
    world.run_until(600);
    assert_eq!(world.agreement(0).committed(), 2);
    world.sync_ms = 100;
    world.step(0, Event::Propose { configuration: set("PSAA"), force: Force::No }, &[]);
    world.cuts.extend([(0, 1), (1, 0)]);
    world.sync_ms = 1;
    assert!(world.write(0));
    for pause in [50, 100] {
        world.run_until(world.now + pause);
        assert_eq!(world.agreement(0).committed(), 2);
    }
    world.cuts.clear();
    world.run_until(world.now + 2_000);
    assert!(world.agreement(0).committed() > 2);
    finish(&world);
}

/// A member that falls silent may lose its files. Its log counts again once it says so again.
#[test]
fn the_log_of_a_silent_member_counts_for_no_commit() {
    let start = Start {
        memory: Memory::Kept,
        id: MemberId(0),
        seed: 1,
        timing: TIMING,
        journaled_majority: true,
        vote: Vote::default(),
        configuration: set("PSS"),
        terms: Terms::new(),
        log_start: 0,
        log_end: 0,
        committed: 0,
    };
    let (mut primary, mut actions) = (Agreement::new(start, 0), Vec::new());
    let configuration = set("PSS").stamp();
    let hear = |body| Event::Received(Message { from: MemberId(1), term: 1, configuration, body });
    let position = Position { term: 1, end: 2 };
    let fetch = || hear(Body::Fetch { position, synced: 2, round: 0, searching: false });
    for event in [
        Event::Campaign,
        Event::VoteSaved(Vote { term: 1, candidate: Some(MemberId(0)) }),
        hear(Body::VoteAnswer { granted: true }),
        Event::ConfigurationKept(configuration),
        Event::TermBegan { term: 1, at: 0 },
        Event::LogMoved { written: 2, synced: 0 },
        fetch(),
    ] {
        primary.step(0, event, &mut actions);
    }
    assert_eq!(primary.state(), State::Primary);
    let late = TIMING.election_timeout_ms;
    primary.step(late, Event::LogMoved { written: 2, synced: 2 }, &mut actions);
    assert_eq!(primary.committed(), 0);
    primary.step(late, fetch(), &mut actions);
    assert_eq!(primary.committed(), 2);
}

/// Member 1 of a set of three, with three records of term 1, two of them committed.
fn follower() -> Agreement {
    let mut terms = Terms::new();
    terms.begin(1, 0);
    let start = Start {
        memory: Memory::Kept,
        id: MemberId(1),
        seed: 1,
        timing: TIMING,
        journaled_majority: true,
        vote: Vote { term: 2, candidate: None },
        configuration: set("PSS"),
        terms,
        log_start: 0,
        log_end: 3,
        committed: 2,
    };
    Agreement::new(start, 0)
}

#[test]
fn a_log_with_a_later_term_than_the_stored_vote_raises_the_term() {
    let mut terms = Terms::new();
    terms.begin(3, 0);
    let vote = Vote { term: 2, candidate: Some(MemberId(0)) };
    let start = Start {
        memory: Memory::Kept,
        id: MemberId(1),
        seed: 1,
        timing: TIMING,
        journaled_majority: true,
        vote,
        configuration: set("PSS"),
        terms,
        log_start: 0,
        log_end: 2,
        committed: 0,
    };
    let mut member = Agreement::new(start, 0);
    assert_eq!(member.term(), 3);
    // The primary of term 2 does not make the member cut its log.
    let body = Body::Heartbeat { commit: 1, round: 1 };
    let message = Message { from: MemberId(0), term: 2, configuration: set("PSS").stamp(), body };
    let mut actions = Vec::new();
    member.step(1, Event::Received(message), &mut actions);
    assert_eq!(member.primary(), None);
    assert!(matches!(&actions[..], [Action::Send { message: Message { term: 3, .. }, .. }]), "{actions:?}");
}

/// The follower's actions when the primary of term 2 says something.
fn told(body: Body) -> Vec<Action> {
    let mut actions = Vec::new();
    let message = Message { from: MemberId(0), term: 2, configuration: set("PSS").stamp(), body };
    follower().step(1, Event::Received(message), &mut actions);
    actions
}

#[test]
fn a_follower_rolls_back_to_the_commit_point_and_no_further() {
    let asked = Position { term: 1, end: 3 };
    let diverged = |end| told(Body::Diverged { asked, at: Position { term: 1, end } });
    assert_eq!(diverged(2), [Action::Truncate(Position { term: 1, end: 2 })]);
    let at = Position { term: 1, end: 1 };
    assert_eq!(diverged(1), [Action::Fatal(Fatal::DivergedBelowCommit { at, committed: 2 })]);
}

#[test]
fn a_member_that_has_stopped_is_not_woken_again_and_again() {
    let mut member = follower();
    let mut actions = Vec::new();
    let (asked, at) = (Position { term: 1, end: 3 }, Position { term: 1, end: 1 });
    let body = Body::Diverged { asked, at };
    let message = Message { from: MemberId(0), term: 2, configuration: set("PSS").stamp(), body };
    member.step(1, Event::Received(message), &mut actions);
    assert_eq!(member.state(), State::Stopped);
    for now in [10_000, 20_000] {
        member.step(now, Event::Tick, &mut actions);
        assert!(member.wake_at() > now);
    }
}

#[test]
fn a_follower_behind_the_primarys_log_needs_an_initial_sync() {
    assert_eq!(told(Body::Reclaimed { start: 9 }), [Action::Resync { start: 9 }]);
}

/// Forged and late messages: nothing panics, and no commit point goes beyond the log.
#[test]
fn any_message_is_survived() {
    let mut random = Random(7);
    let mut world = led_by_first("PSA");
    for _ in 0..20_000 {
        let mut number = || random.below(7);
        let position = Position { term: number(), end: number() };
        let body = match number() + number() {
            0 => Body::PreVote { position },
            1 => Body::PreVoteAnswer { granted: true },
            2 => Body::RequestVote { position },
            3 => Body::VoteAnswer { granted: true },
            4 => Body::Heartbeat { commit: number(), round: number() },
            5 | 6 => Body::Fetch { position, synced: number(), round: number(), searching: true },
            7 => Body::Heard { round: number() },
            8 => Body::Span { from: position, to: number(), commit: number() },
            9 => Body::Diverged { asked: position, at: Position { term: number(), end: number() } },
            10 => Body::Reclaimed { start: number() },
            _ => Body::CampaignNow,
        };
        let (from, term) = (MemberId(number() as u32), number());
        let message = Message { from, term, configuration: set("PSA").stamp(), body };
        for node in &mut world.nodes {
            let agreement = node.agreement.as_mut().expect("it is up");
            let mut actions = Vec::new();
            agreement.step(0, Event::Received(message.clone()), &mut actions);
            assert!(agreement.committed() <= agreement.position().end);
        }
    }
}
