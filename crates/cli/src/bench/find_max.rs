//! `bunko bench find-max`.

use super::arguments::{CommonArguments, EmbeddedArguments, SearchArguments};
use super::run as runs;
use super::{output, progress};
use crate::exit_status::NOT_VALID;
use crate::printed::print_line;
use bunko_bench::scenario::ScenarioSource;
use bunko_bench::{FindMaxOptions, FoundRate, RateTrial};
use std::process::ExitCode;

pub fn run(
    source: &ScenarioSource,
    search: &SearchArguments,
    uri: Option<String>,
    embedded: &EmbeddedArguments,
    common: &CommonArguments,
) -> Result<ExitCode, String> {
    let mut source = source.clone();
    runs::apply(&mut source, common)?;
    runs::refuse_idle(&source, common, uri.is_some(), &["servers"])?;
    let (quantile, objective) = match (search.p99, search.p999) {
        (Some(objective), None) => (0.99, objective),
        (None, Some(objective)) => (0.999, objective),
        _ => return Err("find-max needs an objective: --p99 TIME or --p999 TIME".to_owned()),
    };
    let search = FindMaxOptions {
        quantile,
        objective: objective.0,
        phase: search.phase.clone(),
        start: search.start,
        resolution: search.resolution,
        trials_max: search.trials,
    };
    let mut target = match (uri, runs::choices(embedded)?.as_slice()) {
        (Some(uri), _) => {
            runs::refuse_beside_uri(embedded)?;
            runs::watch_all(std::slice::from_ref(&uri), common)?;
            runs::of_uris(vec![uri]).remove(0)
        }
        (None, [choice]) => {
            let scenario = source.scenario().map_err(|error| error.to_string())?;
            runs::refuse_engine_of_set(&scenario, std::slice::from_ref(choice))?;
            runs::embedded(String::new(), &std::env::temp_dir(), choice.clone())
        }
        (None, _) => return Err("--engine: find-max measures one server".to_owned()),
    };
    let options = runs::options(common)?;
    let mut progress = progress::Progress::new(common.quiet);
    let found = bunko_bench::find_max(&source, &search, &mut target, &options, &mut progress);
    progress.clear();
    let found = found.map_err(|error| error.to_string())?;
    print(&found, quantile, objective.0.as_secs_f64() * 1e3, common.json)?;
    if let Some(report) = &found.report {
        output::write(report, common.output.clone())?;
    }
    Ok(if found.rate.is_some() { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID.number) })
}

fn print(found: &FoundRate, quantile: f64, objective_ms: f64, json: bool) -> Result<(), String> {
    if json {
        let answer = serde_json::json!({
            "step": found.step, "requests_per_second": found.rate, "confirmed": found.confirmed, "trials": found.trials
        });
        print_line(format_args!("{}", serde_json::to_string_pretty(&answer).map_err(|error| error.to_string())?))?;
        return Ok(());
    }
    let percentile = format!("p{}", quantile * 100.0);
    let confirmed = if found.confirmed { "" } else { " in the only trial that --trials left for it" };
    match found.rate {
        Some(rate) => {
            print_line(format_args!("{rate:.0} requests/s keep {percentile} under {objective_ms} ms{confirmed}"))?;
        }
        None => print_line(format_args!("no rate that was tried keeps {percentile} under {objective_ms} ms"))?,
    }
    print_line(format_args!("searched: {}", found.step))?;
    print_line(format_args!("{:>14} {:>14} {:>12}  objective", "offered /s", "achieved /s", "latency us"))?;
    for RateTrial { offered, achieved, latency_us, reason, badges, .. } in &found.trials {
        let latency = latency_us.map_or("-".to_owned(), |us| format!("{us:.0}"));
        let met = reason.as_deref().map_or("met".to_owned(), |reason| format!("missed: {reason}"));
        let badges = if badges.is_empty() { String::new() } else { format!(" ({})", badges.join(", ")) };
        print_line(format_args!("{offered:>14.0} {achieved:>14.0} {latency:>12}  {met}{badges}"))?;
    }
    Ok(())
}
