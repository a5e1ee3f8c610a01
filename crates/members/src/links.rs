//! The links to the other members, which follow the configuration.

use crate::core::Core;
use crate::link::Link;
use crate::sender;
use bunko_bson::DocumentRef;
use bunko_replica::MemberId;
use bunko_replica_set::Listed;
use std::sync::Arc;
use std::thread::Builder;

impl Core {
    /// Ends the links to members that a configuration does not list, and begins those to new ones.
    /// # Errors
    /// A sentence that says why a thread cannot be started. The other links are there.
    pub(crate) fn fit_links(self: &Arc<Self>, configuration: DocumentRef<'_>) -> Result<(), String> {
        let listed = Listed::all(configuration)?;
        let others = listed.into_iter().filter(|listed| listed.id != self.id.0 || listed.host != self.own_host);
        let others: Vec<_> = others.map(|listed| (MemberId(listed.id), listed.host)).collect();
        let mut links = self.links.write();
        links.retain(|link| {
            let stays = others.iter().any(|(id, host)| *id == link.peer && *host == link.host);
            if !stays {
                link.end();
            }
            stays
        });
        let mut threads = self.threads.lock();
        // The threads of members that were removed long ago have ended.
        threads.retain(|thread| !thread.is_finished());
        for (id, host) in others {
            if links.iter().any(|link| link.peer == id) {
                continue;
            }
            let link = Arc::new(Link::new(id, host));
            let (own, core) = (Arc::clone(&link), Arc::downgrade(self));
            let spawned = Builder::new().name(format!("to-{}", link.host)).spawn(move || sender::run(&own, &core));
            threads.push(spawned.map_err(|error| format!("cannot start a thread: {error}"))?);
            links.push(link);
        }
        Ok(())
    }
}
