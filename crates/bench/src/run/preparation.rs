//! Prepares a step: data, the declared state of caches, a write concern.

use super::settled::SettledPhase;
use super::variant::{DataRole, DataState, Session};
use crate::BenchError;
use crate::database;
use crate::operation::Effect;
use crate::scenario::Cache;
use crate::target::Chilled;
use bunko_client::WriteConcern;
use bunko_report::result::Finding;

/// Makes the collection if the phase needs a new one.
pub(super) fn prepare_data(session: &mut Session<'_>, phase: &SettledPhase) -> Result<(), BenchError> {
    let fills = phase.effects().contains(&Effect::Fills);
    if fills || !session.data.exists {
        if session.role == DataRole::Owner {
            database::empty_collections(&mut session.control, session.collections, &session.indexes)?;
        }
        session.data = DataState { exists: true, ..DataState::default() };
        session.meet()?;
    }
    for effect in phase.effects() {
        if let Effect::Changes(fields) = effect {
            session.data.changed.extend(fields);
        }
    }
    Ok(())
}

/// The state of caches before a phase.
pub(super) struct Caches {
    pub state: String,
    pub finding: Option<Finding>,
}

/// Brings caches into the state that the phase declares. An inner error says why that is impossible here.
pub(super) fn prepare_cache(session: &mut Session<'_>, cache: Cache) -> Result<Result<Caches, String>, BenchError> {
    let as_declared = |state: String| Ok(Caches { state, finding: None });
    Ok(match cache {
        Cache::AsLeft => as_declared("as the phase before left them".to_owned()),
        Cache::Warm => {
            let read = database::read_all(&mut session.control, session.collections)?;
            as_declared(format!("warm: {read} documents were read before"))
        }
        Cache::Cold => match session.target.chill()? {
            Chilled::NotOurs => Err("cold caches: only a server that the lab started can be restarted".to_owned()),
            Chilled::Cold => {
                session.reconnect()?;
                as_declared("cold: server restarted, its files' pages dropped by the kernel".to_owned())
            }
            Chilled::PagesKept(reason) => {
                session.reconnect()?;
                let detail = format!("the kernel keeps the files' pages: {reason}");
                let finding = Some(Finding::CacheNotAsDeclared { detail });
                Ok(Caches { state: "server restarted, its files' pages kept by the kernel".to_owned(), finding })
            }
        },
    })
}

/// The phase's own write concern or the scenario's, else the connection string's.
pub(super) fn write_concern(session: &Session<'_>, phase: &SettledPhase) -> WriteConcern {
    let own = phase.write_concern.as_ref().and_then(|text| text.parse().ok());
    own.unwrap_or_else(|| session.write_concern.clone())
}
