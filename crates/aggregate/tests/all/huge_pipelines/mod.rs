//! Rewriting a pipeline of a thousand stages ends after a bounded number of steps, whatever the stages are, and says so if
//! it stopped.

mod hostile;

use bunko_aggregate::Rewrites;
use bunko_testkit::cpu_time::CpuTime;
use std::time::Duration;

/// Maximum processor time of rewriting, beyond that of parsing. Only unbounded work takes longer, even in a build
/// without optimization on a busy machine. `benches/planning.rs` measures an optimized build, whose aim is 50 ms.
const REWRITING_MAX: Duration = Duration::from_secs(5);

/// Steps of rewriting a pipeline, with those inside its `$facet` stages.
const STEPS_MAX: usize = 100_000;

#[test]
fn a_thousand_stages_are_rewritten_within_bounds() {
    let mut stopped = Vec::new();
    for (name, stages) in hostile::pipelines() {
        let began = CpuTime::now();
        hostile::planned(&stages, Rewrites::Off);
        let parsing = began.elapsed();
        let began = CpuTime::now();
        let pipeline = hostile::planned(&stages, Rewrites::Applied);
        let (planning, steps) = (began.elapsed(), pipeline.rewriting_steps());
        println!("{name}: {parsing:?} to parse, {planning:?} with {steps} steps of {:?}", pipeline.rewrites());
        assert!(planning < parsing + REWRITING_MAX, "{name}: {parsing:?} to parse, {planning:?} with rewrites");
        assert!(steps <= STEPS_MAX, "{name}: {steps} steps");
        assert_eq!(steps == STEPS_MAX, pipeline.rewrites().contains(&"stopped"), "{name}: {steps} steps");
        stopped.extend((steps == STEPS_MAX).then_some(name));
        hostile::run(&pipeline);
    }
    assert!(!stopped.is_empty() && stopped.len() < hostile::pipelines().len(), "{stopped:?}");
}
