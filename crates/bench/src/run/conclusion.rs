//! Ends a step.

use super::limits::{self, Sizes};
use super::settle::{Settled, settle};
use super::settled::SettledPhase;
use super::variant::{DataRole, Session};
use crate::BenchError;
use crate::database::{self, Sample};
use crate::server::SetProbe;
use bunko_report::result::{Finding, Measurement, Outcome, Run};

/// Ends a step after the load: waits for the server's background work, checks limits, and verifies the data.
pub(super) fn conclude(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    started_at_ms: u64,
    mut measurement: Measurement,
    acknowledges: bool,
) -> Result<Run, BenchError> {
    if let Some(longest) = phase.phase.settle
        && let Some(Settled { settling, finding }) = settle(session, longest.0)
    {
        measurement.settling = Some(settling);
        measurement.findings.extend(finding);
    }
    let on_disk = session.probe.data_directory().map(|directory| bunko_host::directory_bytes(directory));
    let sizes = Sizes { on_disk, live: session.live_bytes() };
    measurement.findings.extend(limits::check(&phase.phase.limits, &measurement, &sizes));
    verify(session, phase, &mut measurement, acknowledges)?;
    session.reached.insert(phase.phase.name.clone(), measurement.achieved_rate);
    let repetition = session.place.repetition;
    Ok(Run { repetition, started_at_ms, outcome: Outcome::Measured(Box::new(measurement)) })
}

/// Compares the server's count and a sample of its documents with the expected ones.
fn verify(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    measurement: &mut Measurement,
    acknowledges: bool,
) -> Result<(), BenchError> {
    if session.role == DataRole::Guest {
        return Ok(());
    }
    let found = database::count(&mut session.control, session.collections)?;
    let expected = phase.phase.expect_count.unwrap_or(session.data.expected);
    if found != expected {
        let what =
            if acknowledges { "documents in the collection" } else { "documents in the collection (unacknowledged)" };
        measurement.findings.push(Finding::CountsDiffer { what: what.to_owned(), expected, found });
    }
    for member in session.set.iter_mut().flat_map(SetProbe::followers) {
        let host = member.host.clone();
        let Some(connection) = member.connection() else { continue };
        let finding = match database::count_on_follower(connection, session.collections) {
            Ok(found) if found == expected => continue,
            Ok(found) => Finding::CountsDiffer { what: format!("documents on {host}"), expected, found },
            // The primary's figures stay valid without this count.
            Err(error) => Finding::MembersBehind { detail: format!("{host} does not count its documents: {error}") },
        };
        measurement.findings.push(finding);
    }
    let except: Vec<&str> = session.data.changed.iter().map(String::as_str).collect();
    let seed = session.seed ^ u64::from(session.place.repetition);
    let (base, share) = (session.data.base, session.share);
    let place = |number: u64| if number < base { number } else { base + share.place(number - base) };
    let sample = Sample { count: base + session.data.own, place: &place, seed };
    let (verified, differs) =
        database::verify(&mut session.control, &session.dataset, session.collections, &sample, &except)?;
    measurement.verified_documents = verified;
    measurement.findings.extend(differs.map(|detail| Finding::ContentsDiffer { detail }));
    Ok(())
}
