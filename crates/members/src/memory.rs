//! A member whose files were lost: what the other members remember of it. The rules are in [`bunko_replica::Memory`].

use crate::configuration::timing;
use crate::core::Core;
use crate::kept::LOST;
use crate::peers::Peer;
use bunko_replica::{Event, Memory, Position, Remembered, Stamp};
use std::time::Duration;

/// Tells the agreement what others remember, once enough of them have answered. Their answers count if they were asked
/// for when no message of this member's former life could be counted any more.
pub(crate) fn look(core: &Core) {
    if core.memory() != Memory::Lost {
        return;
    }
    let configuration = core.configuration();
    let timeout_ms = timing(core.kept.lock().configuration.as_ref()).election_timeout_ms;
    let since = core.began + Duration::from_millis(2 * timeout_ms);
    let is_voter = |peer: &Peer| configuration.member(peer.id).is_some_and(|member| member.votes);
    let peers: Vec<_> = core.links.read().iter().map(|link| link.heard.seen()).filter(is_voter).collect();
    let is_recent = |peer: &&Peer| peer.failure.is_none() && peer.answered.is_some_and(|at| at >= since + peer.ping);
    // It hears of a newer configuration soon, which may have other voters.
    let remembered = |peer| answer(peer).filter(|(_, stamp)| *stamp == configuration.stamp()).map(|(it, _)| it);
    let answers: Vec<_> = peers.iter().filter(is_recent).filter_map(remembered).collect();
    let Some(recalled) = configuration.recalled(&answers) else { return };
    tracing::info!(target: "REPL", id = 336, ctx = "agreement", term = recalled.term, end = recalled.floor.end, "The other members have told this one what it must know to vote");
    core.step(Event::Recalled(recalled), None);
}

/// Another member's answer: what it remembers, and the stamp of its configuration.
fn answer(peer: &Peer) -> Option<(Remembered, Stamp)> {
    let number = |name| peer.number(name).and_then(|number| u64::try_from(number).ok());
    let position = Position { term: number("logTerm")?, end: number("logEnd")? };
    let configuration = Stamp { term: number("configTerm")?, version: number("configVersion")? };
    let remembered = Remembered { term: number("term")?, position };
    peer.field(LOST).is_none().then_some((remembered, configuration))
}
