//! Measures the processor time of parsing and rewriting pipelines of a thousand stages:
//! `cargo bench -p bunko-aggregate --bench planning`. `ONLY` selects pipelines by a part of their name.

#![forbid(unsafe_code)]

#[path = "../tests/all/huge_pipelines/hostile.rs"]
mod hostile;

use bunko_aggregate::Rewrites;
use bunko_testkit::cpu_time::CpuTime;

/// Times that each pipeline is planned; the fastest counts.
const ROUNDS: usize = 5;

fn main() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, stages) in hostile::pipelines().into_iter().filter(|(name, _)| name.contains(&only)) {
        let fastest = |rewrites| {
            let rounds = (0..ROUNDS).map(|_| {
                let began = CpuTime::now();
                let pipeline = hostile::planned(&stages, rewrites);
                let planning = began.elapsed();
                hostile::run(&pipeline);
                (planning, began.elapsed(), pipeline.rewriting_steps(), pipeline.rewrites().contains(&"stopped"))
            });
            rounds.min().expect("some rounds")
        };
        let (parsing, parsed, ..) = fastest(Rewrites::Off);
        let (planning, run, steps, is_stopped) = fastest(Rewrites::Applied);
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
        let end = if is_stopped { ", stopped" } else { "" };
        println!(
            "{name}: {:.1} ms to parse, {:.1} ms to rewrite in {steps} steps{end}; without documents {:.1} ms to run, {:.1} \
             without rewrites",
            ms(parsing),
            ms(planning) - ms(parsing),
            ms(run.saturating_sub(planning)),
            ms(parsed.saturating_sub(parsing))
        );
    }
}
