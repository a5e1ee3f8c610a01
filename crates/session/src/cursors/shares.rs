//! Counts the cursors of each client, so that no client takes all of them.

use crate::sessions::id::Digest;
use bunko_catalog::NOBODY;
use bunko_errors::{ErrorCode, Failure, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum number of cursors that wait at once; each keeps a snapshot.
pub(super) const CURSORS_MAX: usize = 100_000;
/// Maximum number of cursors that one user opens from one address, so that other clients can always open some. From all
/// addresses together, a user may have no more cursors than are still free.
const CLIENT_CURSORS_MAX: usize = 25_000;

/// A user ([`NOBODY`] if there are no users) and a [`network`](bunko_request::Peer::network), which is `None` for
/// clients on a Unix domain socket.
type Client = (Digest, Option<IpAddr>);

/// A counted cursor of a client. The reference count is the number of the client's cursors plus one.
pub(super) type Share = Arc<()>;

/// The shares of all clients that have cursors, or had some at the last cleanup.
#[derive(Default)]
pub(super) struct CursorShares {
    clients: Mutex<BTreeMap<Client, Share>>,
}

impl CursorShares {
    /// Takes a share for one more cursor of a client, while `free` cursors are left in total.
    /// # Errors
    /// `OperationFailed` if the client, or its user, may have no more.
    pub fn take(&self, client: Client, free: usize) -> Result<Share> {
        let mut clients = self.clients.lock();
        let refused = |count: usize, whose: &str| {
            let message = format!("{count} cursors of this {whose} are open already; close some or let them time out");
            Err(Failure::new(ErrorCode::OPERATION_FAILED, message))
        };
        let (user, _) = client;
        // While more than half of all cursors are free, no user can have more cursors than are free.
        if user != NOBODY && free <= CURSORS_MAX / 2 {
            let of_user = clients.range((user, None)..).take_while(|((other, _), _)| *other == user);
            let own = of_user.map(|(_, share)| Arc::strong_count(share) - 1).sum::<usize>();
            if own >= free {
                return refused(own, "user");
            }
        }
        let share = clients.entry(client).or_default();
        if Arc::strong_count(share) > CLIENT_CURSORS_MAX {
            return refused(CLIENT_CURSORS_MAX, "client");
        }
        Ok(Arc::clone(share))
    }

    /// Drops clients that have no cursors any more.
    pub fn forget_unused(&self) {
        self.clients.lock().retain(|_, share| Arc::strong_count(share) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_request::Peer;
    use std::net::SocketAddr;

    fn of(user: Digest, address: &str) -> Client {
        (user, Peer::Tcp(SocketAddr::new(address.parse().expect("an address"), 4000)).network())
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let shares = CursorShares::default();
        let own = |low: usize| of(NOBODY, &format!("2001:db8:0:1::{low:x}"));
        let taken = |low| shares.take(own(low), CURSORS_MAX - low);
        let _shares: Vec<_> = (0..CLIENT_CURSORS_MAX).map(|low| taken(low).expect("a few")).collect();
        assert!(taken(CLIENT_CURSORS_MAX).is_err(), "however many addresses it takes");
        shares.take(of(NOBODY, "2001:db8:0:2::1"), 1).expect("another network's");
    }

    #[test]
    fn a_client_with_many_cursors_leaves_others_some() {
        let shares = CursorShares::default();
        let (one, other) = (of(NOBODY, "10.0.0.1"), of(NOBODY, "10.0.0.2"));
        let mut taken: Vec<_> = (0..CLIENT_CURSORS_MAX).map(|_| shares.take(one, 1).expect("a few")).collect();
        let refused = shares.take(one, 1).expect_err("too many of one client");
        assert!(refused.to_string().contains("cursors of this client are open already"), "{refused}");
        shares.take(other, 1).expect("the first of another");
        shares.take((NOBODY, None), 1).expect("the first of a socket");
        taken.pop();
        let _again = shares.take(one, 1).expect("one was closed");
        shares.forget_unused();
        assert_eq!(shares.clients.lock().len(), 1, "those without cursors are forgotten");
    }

    #[test]
    fn a_user_with_many_cursors_leaves_others_some() {
        let shares = CursorShares::default();
        let mut taken = Vec::new();
        let mut take_all = |user: u8| {
            let before = taken.len();
            for address in 0..8 {
                let client = of([user; 32], &format!("10.0.0.{address}"));
                while let Ok(share) = shares.take(client, CURSORS_MAX - taken.len()) {
                    taken.push(share);
                }
            }
            taken.len() - before
        };
        assert_eq!([take_all(1), take_all(2), take_all(3)], [50_000, 25_000, 12_500]);
        let refused = shares.take(of([1; 32], "10.0.0.9"), 12_500).expect_err("too many of one user");
        assert!(refused.to_string().contains("50000 cursors of this user are open already"), "{refused}");
        // The address of the first user has room for another user.
        shares.take(of([4; 32], "10.0.0.1"), 12_500).expect("the first of another user");
    }
}
