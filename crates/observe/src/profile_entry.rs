//! A finished operation, as `system.profile` and slow lines in the log show it.
//! Source: MongoDB manual 8.2, "Database Profiler Output" and "Log Messages for Slow Queries".

use crate::entry::Entry;
use crate::observation::Observation;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_query::{PlanChoice, PlanReport};
use bunko_request::secret_names::shown_statement;
use bunko_request::truncated_command::shortened;

/// Maximum number of bytes of a statement in a log line; mongod truncates attributes there.
const LINE_COMMAND_BYTES_MAX: usize = 10 * 1024;
/// A command with more bytes is shown as text, as in MongoDB.
const COMMAND_BYTES_MAX: usize = 50 * 1024;

/// Names of figures that differ between `system.profile` and the log.
struct Names {
    yields: &'static str,
    reply_bytes: &'static str,
    duration: &'static str,
}

const PROFILE: Names = Names { yields: "numYield", reply_bytes: "responseLength", duration: "millis" };
const LOG: Names = Names { yields: "numYields", reply_bytes: "reslen", duration: "durationMillis" };

/// The document of an operation in `system.profile`, on which filters are evaluated too.
pub fn describe(entry: &Entry<'_>) -> DocumentBuf {
    let sender = &entry.sender;
    let mut described = DocumentBuf::new().with("op", entry.op).with("ns", &entry.namespace);
    append_facts(&mut described, entry, &PROFILE);
    described
        .append("ts", ValueRef::DateTime(sender.ended_ms))
        .append("client", &sender.ip.map_or_else(|| sender.peer.to_string(), |ip| ip.to_string()));
    if let Some(name) = sender.application {
        described.append("appName", name);
    }
    let mut users = ArrayBuf::new();
    let mut whole_name = String::new();
    if let Some(user) = sender.user {
        users.push(&user.to_document("user"));
        whole_name = format!("{}@{}", user.name, user.database);
    }
    described.append("allUsers", &users).append("user", &whole_name);
    described
}

/// The attributes of a slow line in the log.
pub fn attributes(entry: &Entry<'_>) -> DocumentBuf {
    let sender = &entry.sender;
    let mut attributes = DocumentBuf::new().with("type", entry.log_type).with("ns", &entry.namespace);
    if let Some(name) = sender.application {
        attributes.append("appName", name);
    }
    append_facts(&mut attributes, entry, &LOG);
    attributes.with("remote", &sender.peer.to_string())
}

/// Appends the facts of both forms, in MongoDB's order.
fn append_facts(facts: &mut DocumentBuf, entry: &Entry<'_>, names: &Names) {
    let observation = entry.observation;
    let of_lookup = observation.plan_of_lookup();
    let plan = observation.plan.as_deref().or(of_lookup.as_ref());
    append_command(facts, entry, names);
    if let Some(command) = &observation.originating_command {
        facts.append("originatingCommand", &shortened(command.as_ref(), COMMAND_BYTES_MAX));
    }
    if let Some(cursor) = observation.cursor {
        facts.append("cursorid", cursor);
    }
    if let Some(examined) = observation.examined {
        facts.append("keysExamined", examined.keys as i64).append("docsExamined", examined.documents as i64);
    }
    append_plan_facts(facts, observation, plan);
    append_counts(facts, observation);
    facts.append(names.yields, 0_i64);
    if let Some(returned) = observation.returned {
        facts.append("nreturned", returned as i64);
    }
    if let Some(plan) = plan {
        facts.extend(plan.hashes.as_ref()).append("queryFramework", "classic");
    }
    facts.append("locks", &entry.locking.acquired());
    if let Some(concern) = entry.command.as_ref().get("readConcern") {
        facts.append("readConcern", concern);
    }
    if let Some(concern) = entry.command.as_ref().get("writeConcern") {
        facts.append("writeConcern", concern);
    }
    facts.append("storage", &DocumentBuf::new());
    if let Some(failure) = entry.outcome.failure {
        facts
            .append("ok", 0.0)
            .append("errMsg", failure.message())
            .append("errName", failure.code().name().as_str())
            .append("errCode", failure.code().0);
    }
    if let Some(bytes) = entry.outcome.reply_bytes {
        facts.append(names.reply_bytes, bytes as i32).append("protocol", entry.sender.protocol);
    }
    if let Some(time) = entry.sender.processor_time {
        facts.append("cpuNanos", time.as_nanos() as i64);
    }
    facts.append(names.duration, entry.outcome.elapsed.as_millis() as i32);
    if let Some(plan) = plan {
        facts.append("planSummary", plan.summary.as_str());
        // Log lines leave the stages out, because a line would be many times as long with them.
        if names.duration == PROFILE.duration {
            let stages = shown_statement(&entry.namespace, plan.stages.clone());
            facts.append("execStats", &stages);
        }
    }
}

/// Appends the command. In a log line, a large command has only its small fields, with its size in `commandBytes`; a
/// large statement is a text.
fn append_command(facts: &mut DocumentBuf, entry: &Entry<'_>, names: &Names) {
    let command = entry.command.as_ref();
    if names.duration == PROFILE.duration {
        facts.append("command", &shortened(command, COMMAND_BYTES_MAX));
        return;
    }
    let request_bytes = entry.sender.request_bytes;
    match entry.small_fields.map(|copy| copy()) {
        Some(small) if small.as_ref().len_bytes() < request_bytes => {
            facts.append("command", &small).append("commandBytes", request_bytes as i64);
        }
        _ => {
            facts.append("command", &shortened(command, LINE_COMMAND_BYTES_MAX));
        }
    }
}

/// Appends facts of a plan that are shown only if they are true.
fn append_plan_facts(facts: &mut DocumentBuf, observation: &Observation, plan: Option<&PlanReport>) {
    let mut append_true = |name: &str, is_so: bool| {
        if is_so {
            facts.append(name, true);
        }
    };
    append_true("hasSortStage", plan.is_some_and(|plan| plan.sorts));
    append_true("usedDisk", observation.has_used_disk || plan.is_some_and(|plan| plan.used_disk));
    let choice = plan.map_or(PlanChoice::Rules, |plan| plan.choice);
    append_true("fromMultiPlanner", matches!(choice, PlanChoice::Trial | PlanChoice::Replanned { .. }));
    append_true("fromPlanCache", choice == PlanChoice::Cache);
    if let PlanChoice::Replanned { works } = choice {
        let expected = works / 10;
        facts.append("replanned", true).append(
            "replanReason",
            &format!(
                "cached plan was less efficient than expected: expected trial execution to take {expected} works but it \
                 took at least {works} works"
            ),
        );
    }
}

fn append_counts(facts: &mut DocumentBuf, observation: &Observation) {
    let counts = &observation.counts;
    for (name, count) in [
        ("nMatched", counts.matched),
        ("nModified", counts.modified),
        ("ninserted", counts.inserted),
        ("ndeleted", counts.deleted),
        ("nUpserted", counts.upserted),
    ] {
        if let Some(count) = count {
            facts.append(name, count as i64);
        }
    }
    if observation.is_cursor_exhausted {
        facts.append("cursorExhausted", true);
    }
    for (name, count) in [("keysInserted", counts.keys_inserted), ("keysDeleted", counts.keys_deleted)] {
        if count > 0 {
            facts.append(name, count as i64);
        }
    }
}
