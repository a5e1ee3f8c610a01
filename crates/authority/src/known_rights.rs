//! Cache of a user's rights on the collections that the connection named most recently.

use bunko_access::{ActionSet, Authorization};

/// Maximum number of collections in the cache of one connection.
const KNOWN_MAX: usize = 8;
/// Longest name that is cached, in bytes of database and collection. No collection has a longer name, but a client can
/// ask for one.
const NAME_BYTES_MAX: usize = 255;

/// The rights of one user on single collections. The cache is dropped with the user's [`Authorization`], so it never
/// outlives a change of users or roles.
#[derive(Debug, Default)]
pub(crate) struct KnownRights {
    known: Vec<Known>,
    /// The entry that is replaced next, once there are [`KNOWN_MAX`].
    oldest: usize,
}

#[derive(Debug)]
struct Known {
    database: Box<str>,
    collection: Box<str>,
    actions: ActionSet,
}

impl KnownRights {
    /// All actions that the user may take on a collection.
    pub fn on(&mut self, authorization: &Authorization, database: &str, collection: &str) -> ActionSet {
        let is_it = |known: &&Known| *known.collection == *collection && *known.database == *database;
        if let Some(known) = self.known.iter().find(is_it) {
            return known.actions;
        }
        let actions = authorization.actions_on(database, collection);
        if database.len() + collection.len() > NAME_BYTES_MAX {
            return actions;
        }
        let known = Known { database: database.into(), collection: collection.into(), actions };
        if self.known.len() < KNOWN_MAX {
            self.known.push(known);
        } else {
            self.known[self.oldest] = known;
            self.oldest = (self.oldest + 1) % KNOWN_MAX;
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_access::{Action, Privilege, Resource};

    #[test]
    fn each_collection_keeps_its_own_rights_however_many_there_are() {
        let privileges: Vec<_> = (0..3 * KNOWN_MAX)
            .map(|number| Privilege {
                resource: Resource::Collection(format!("d{}", number % 2), format!("c{number}")),
                actions: ActionSet::of(&[Action::ALL[number]]),
            })
            .collect();
        let authorization = Authorization::new(&privileges);
        let mut rights = KnownRights::default();
        for round in 0..5 {
            for number in 0..3 * KNOWN_MAX {
                for database in ["d0", "d1"] {
                    let collection = format!("c{}", (number * (round + 1)) % (3 * KNOWN_MAX));
                    let found = rights.on(&authorization, database, &collection);
                    assert_eq!(found, authorization.actions_on(database, &collection), "{database}.{collection}");
                }
            }
        }
        assert_eq!(rights.known.len(), KNOWN_MAX);
        let long = "c".repeat(NAME_BYTES_MAX);
        assert_eq!(rights.on(&authorization, "d0", &long), ActionSet::NONE);
        assert!(rights.known.iter().all(|known| *known.collection != *long), "made up names take no memory");
    }
}
