//! Pipelines that need more than they may have: each ends with MongoDB's error, or with its result, within a memory
//! limit, and a bystander's pings are answered meanwhile. Prints the cost of each.

use crate::alone;
use crate::bystander::Bystander;
use crate::peer::{Peer, Running, code, command, first_batch};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::time::{Duration, Instant};

const DATABASE: &str = "peer";
/// Maximum memory of the server: a stage may hold 100 MB. While the server builds a value from them, it holds them
/// twice, and the reply too.
const MEMORY_MAX_BYTES: u64 = 320 << 20;
/// Longest wait of a bystander, for half of the pings and for 95 of 100.
const PING_MEDIAN: Duration = Duration::from_millis(20);
const PING_MOST: Duration = Duration::from_millis(100);

const MAX_TIME_MS_EXPIRED: i32 = 50;
/// Longest time of a reply from a server that is not optimised.
const PATIENCE: Duration = Duration::from_mins(2);

/// Expected outcome of a pipeline.
enum End {
    Answer(&'static str),
    Code(i32),
    /// `maxTimeMS` ends it, because it would run for hours.
    OutOfTime,
}

struct Case {
    name: &'static str,
    over: &'static str,
    pipeline: String,
    end: End,
}

fn case(name: &'static str, over: &'static str, pipeline: String, end: End) -> Case {
    Case { name, over, pipeline, end }
}

fn repeated(stage: &str, count: usize) -> String {
    format!("[{}]", vec![stage; count].join(", "))
}

/// `$add` nested to that depth.
fn nested(depth: usize) -> String {
    format!("[{{$set: {{a: {}1{}}}}}]", "{$add: [1, ".repeat(depth), "]}".repeat(depth))
}

/// An expression that doubles its value 40 times.
fn doubled(operator: &str, initial: &str) -> String {
    let doubling = format!("{{{operator}: ['$$value', '$$value']}}");
    format!("[{{$set: {{a: {{$reduce: {{input: {{$range: [0, 40]}}, initialValue: {initial}, in: {doubling}}}}}}}}}]")
}

fn cases() -> Vec<Case> {
    let add_one = "{$set: {n: {$add: [{$ifNull: ['$n', 0]}, 1]}}}";
    let graph = |over: &str, start: &str| {
        format!(
            "[{{$match: {{_id: 0}}}}, {{$graphLookup: {{from: '{over}', startWith: {start}, connectFromField: 'to',
              connectToField: '_id', as: 'all'}}}}, {{$project: {{n: {{$size: '$all'}}}}}}]"
        )
    };
    vec![
        case("1,000 stages", "kept", repeated(add_one, 1_000), End::Answer("{_id: 1, text: \"kept\", n: 1000}")),
        case("1,001 stages", "kept", repeated(add_one, 1_001), End::Code(7_749_501)),
        case("expressions 200 deep", "kept", nested(200), End::Code(15)),
        case("$range of a billion", "kept", "[{$set: {a: {$range: [0, 1000000000]}}}]".into(), End::Code(146)),
        case(
            "$range of a billion per document",
            "kept",
            "[{$project: {n: {$size: {$range: [0, {$multiply: [1000000000, '$_id']}]}}}}]".into(),
            End::Code(146),
        ),
        case("$concat that doubles", "kept", doubled("$concat", "'x'"), End::Code(16493)),
        case("$concatArrays that doubles", "kept", doubled("$concatArrays", "['$text']"), End::Code(146)),
        case(
            "$push of everything",
            "wide",
            "[{$group: {_id: null, all: {$push: '$$ROOT'}}}, {$project: {n: {$size: '$all'}}}]".into(),
            End::Code(146),
        ),
        case("$graphLookup in circles", "ring", graph("ring", "'$_id'"), End::Answer("{_id: 0, n: 2000}")),
        case("$graphLookup of everything", "ring", graph("wide", "{$range: [0, 120000]}"), End::Code(40099)),
        case(
            "$graphLookup in circles from everywhere",
            "ring",
            "[{$graphLookup: {from: 'ring', startWith: '$_id', connectFromField: 'to', connectToField: '_id', as: 'all'}},
              {$project: {n: {$size: '$all'}}}, {$group: {_id: null, n: {$sum: '$n'}}}]"
                .into(),
            End::OutOfTime,
        ),
    ]
}

fn run(peer: &mut Peer, over: &str, pipeline: &str, max_time_ms: i32) -> DocumentBuf {
    let text = format!("{{aggregate: '{over}', pipeline: {pipeline}, cursor: {{}}, maxTimeMS: {max_time_ms}}}");
    peer.run_body(command(DATABASE, &text.replace('\n', " ")).as_ref())
}

/// Inserts a ring of documents with shortcuts, and more documents than a stage may gather.
fn fill(peer: &mut Peer) {
    let numbers = |count: usize| format!("{{$set: {{i: {{$range: [0, {count}]}}}}}}, {{$unwind: '$i'}}");
    let to =
        |times: usize, plus: usize| format!("{{$mod: [{{$add: [{{$multiply: ['$i', {times}]}}, {plus}]}}, 2000]}}");
    let ring = format!(
        "[{}, {{$project: {{_id: '$i', to: [{}, {}, {}]}}}}, {{$out: 'ring'}}]",
        numbers(2_000),
        to(1, 1),
        to(7, 0),
        to(13, 5)
    );
    let text = "x".repeat(1_000);
    let wide = format!("[{}, {{$project: {{_id: '$i', pad: '{text}'}}}}, {{$out: 'wide'}}]", numbers(120_000));
    for pipeline in [ring, wide] {
        let reply = run(peer, "kept", &pipeline, 0);
        assert!(is_ok(reply.as_ref()), "{reply:?}");
    }
}

fn is_ok(reply: DocumentRef<'_>) -> bool {
    matches!(reply.get("ok"), Some(ValueRef::Double(1.0)))
}

/// Peak memory of the server since the last call, in bytes.
/// Source: `proc_pid_clear_refs(5)`, 5.
fn peak_bytes(running: &Running) -> u64 {
    let process = format!("/proc/{}", running.server.pid());
    let status = std::fs::read_to_string(format!("{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of /proc");
    let _ = std::fs::write(format!("{process}/clear_refs"), "5");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn pipelines_that_want_too_much_end_within_their_memory_and_hold_up_no_client() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    peer.be_patient(PATIENCE);
    fill(&mut peer);
    let bystander = Bystander::start(running.address());
    let mut complaints = Vec::new();
    for case in cases() {
        peak_bytes(&running);
        let (before, began) = (running.resident_bytes(), Instant::now());
        let max_time_ms = if matches!(case.end, End::OutOfTime) { 2_000 } else { 0 };
        let reply = run(&mut peer, case.over, &case.pipeline, max_time_ms);
        let took = began.elapsed();
        let more = peak_bytes(&running).saturating_sub(before);
        println!("{}: {took:.1?}, {} MB more", case.name, more >> 20);
        match case.end {
            End::Answer(answer) if is_ok(reply.as_ref()) && first_batch(&reply) == [answer] => {}
            End::Code(expected) if !is_ok(reply.as_ref()) && code(reply.as_ref()) == expected => {}
            End::OutOfTime if code(reply.as_ref()) == MAX_TIME_MS_EXPIRED => {}
            _ => complaints.push(format!("{}: {reply:?}", case.name)),
        }
        if more > MEMORY_MAX_BYTES {
            complaints.push(format!("{}: {} MB", case.name, more >> 20));
        }
    }
    let pings = bystander.stop();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    println!("{pings}");
    pings.assert_quick(PING_MEDIAN, PING_MOST);
    running.assert_serves();
}
