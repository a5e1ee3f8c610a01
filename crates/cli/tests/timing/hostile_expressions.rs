//! Expressions of a few hundred bytes that would run for hours or take gigabytes: they end when they are told to, and
//! other clients do not notice.

use crate::alone;
use crate::peer::{self, Running, code, command};
use bunko_bson::DocumentBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MAX_TIME_MS_EXPIRED: i32 = 50;
/// Maximum time that a command may take on a busy machine if it was told to end after half a second.
const ENDED: Duration = Duration::from_secs(4);
/// Longest wait of another client meanwhile, on a busy machine with fewer cores than such commands.
const BYSTANDER: Duration = Duration::from_millis(750);

/// An expression that takes years.
const ENDLESS: &str = "{$sum: {$map: {input: {$range: [0, 1000000]}, as: 'a', in: {$sum: {$map: {
    input: {$range: [0, 1000000]}, as: 'b', in: {$sum: {$map: {input: {$range: [0, 1000000]}, in: {$add: ['$$a', '$$b']}}}}
    }}}}}}";

/// The commands that evaluate it, and other commands that multiply work.
fn endless() -> Vec<String> {
    let expr = format!("{{$expr: {{$eq: [{ENDLESS}, 5]}}}}");
    vec![
        format!("{{find: 'kept', filter: {expr}, maxTimeMS: 500}}"),
        format!("{{find: 'kept', projection: {{x: {ENDLESS}}}, maxTimeMS: 500}}"),
        format!("{{count: 'kept', query: {expr}, maxTimeMS: 500}}"),
        format!("{{distinct: 'kept', key: 'text', query: {expr}, maxTimeMS: 500}}"),
        format!("{{findAndModify: 'kept', query: {expr}, update: {{$set: {{a: 1}}}}, maxTimeMS: 500}}"),
        format!("{{delete: 'kept', deletes: [{{q: {expr}, limit: 0}}], maxTimeMS: 500}}"),
        aggregate(&format!("[{{$group: {{_id: {ENDLESS}}}}}]")),
        aggregate(&format!("[{{$group: {{_id: null, all: {{$push: {ENDLESS}}}}}}}]")),
        aggregate(&format!("[{{$addFields: {{a: {ENDLESS}}}}}]")),
        aggregate(
            "[{$addFields: {a: {$range: [0, 5000]}, b: {$range: [0, 5000]}, c: {$range: [0, 5000]}}},
              {$unwind: '$a'}, {$unwind: '$b'}, {$unwind: '$c'}, {$match: {c: -1}}]",
        ),
        aggregate(
            "[{$addFields: {a: {$range: [0, 5000]}, b: {$range: [0, 5000]}, c: {$range: [0, 5000]}}},
              {$unwind: '$a'}, {$unwind: '$b'}, {$unwind: '$c'}, {$group: {_id: '$x', n: {$sum: '$a'}}}]",
        ),
    ]
}

fn aggregate(pipeline: &str) -> String {
    format!("{{aggregate: 'kept', pipeline: {pipeline}, cursor: {{}}, maxTimeMS: 500}}")
}

fn parsed(text: &str) -> DocumentBuf {
    command("peer", &text.replace('\n', " "))
}

#[test]
fn endless_expressions_end_in_time_and_hold_up_no_client() {
    let _alone = alone();
    let running = Running::start();
    let is_over = AtomicBool::new(false);
    let slowest = std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let (mut peer, mut slowest) = (running.peer(), Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
                slowest = slowest.max(began.elapsed());
                std::thread::sleep(Duration::from_millis(5));
            }
            slowest
        });
        let hostile: Vec<_> = endless()
            .into_iter()
            .map(|text| {
                let running = &running;
                scope.spawn(move || {
                    let began = Instant::now();
                    let reply = running.peer().run_body(parsed(&text).as_ref());
                    assert_eq!(code(reply.as_ref()), MAX_TIME_MS_EXPIRED, "{text}: {reply:?}");
                    assert!(began.elapsed() < ENDED, "{text}: {:?}", began.elapsed());
                })
            })
            .collect();
        let ended: Vec<_> = hostile.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        let slowest = bystander.join().expect("the bystander is served");
        assert!(ended.into_iter().all(|ended| ended.is_ok()), "see above");
        slowest
    });
    assert!(slowest < BYSTANDER, "{slowest:?}");
    running.assert_serves();
}

#[test]
fn values_that_become_too_large_or_too_deep_are_answered() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    let doubled = ["{$addFields: {a: '$$ROOT', b: '$$ROOT', c: '$$ROOT', d: '$$ROOT'}}"; 20].join(", ");
    let large = "{$addFields: {t: {$reduce: {input: {$range: [0, 23]}, initialValue: 'x',
                 in: {$concat: ['$$value', '$$value']}}}}}";
    for (expected, pipeline) in [
        (10334, format!("[{doubled}]")),
        (10334, format!("[{large}, {{$addFields: {{a: '$t', b: '$t'}}}}]")),
        (16493, format!("[{large}, {{$addFields: {{a: {{$concat: ['$t', '$t', '$t']}}}}}}]")),
        (15, "[{$addFields: {a: {$reduce: {input: {$range: [0, 18000]}, initialValue: 1, in: ['$$value']}}}}]".to_owned()),
        (15, "[{$match: {$expr: {$eq: [{$reduce: {input: {$range: [0, 18000]}, initialValue: 1, in: ['$$value']}}, 1]}}}]".to_owned()),
    ] {
        let reply = peer.run_body(parsed(&format!("{{aggregate: 'kept', pipeline: {pipeline}, cursor: {{}}}}")).as_ref());
        assert_eq!(code(reply.as_ref()), expected, "{pipeline}: {reply:?}");
    }
    // A value within a pipeline may be larger than a document that is returned.
    let passing =
        format!("[{large}, {{$addFields: {{a: '$t', b: '$t'}}}}, {{$project: {{n: {{$strLenBytes: '$b'}}}}}}]");
    let reply = peer.run_body(parsed(&format!("{{aggregate: 'kept', pipeline: {passing}, cursor: {{}}}}")).as_ref());
    assert_eq!(peer::first_batch(&reply), ["{_id: 1, n: 8388608}"]);
    running.assert_serves();
}
