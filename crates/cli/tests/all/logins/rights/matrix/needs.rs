//! The documented needs of commands, and whether a user's privileges meet them.
//!
//! Written from the manual's rules for resources and not from the server's code, so that one checks the other.
//! Source: MongoDB manual 8.2, "Resource Document".

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef};

/// Contents of a cell of the column `needs`.
pub enum Needs {
    /// `nothing`: the command runs before a login.
    Nothing,
    /// `a login`.
    Login,
    /// `everything`: any action on any resource.
    Everything,
    /// `A on R and B on S or C on T`: alternatives, each with all its actions.
    Actions(Vec<Vec<(String, String)>>),
}

impl Needs {
    pub fn parse(text: &str) -> Self {
        let pair = |text: &str| {
            let (action, resource) = text.split_once(" on ").unwrap_or_else(|| panic!("'{text}' is on nothing"));
            (action.to_owned(), resource.to_owned())
        };
        match text {
            "nothing" => Self::Nothing,
            "a login" => Self::Login,
            "everything" => Self::Everything,
            _ => Self::Actions(text.split(" or ").map(|all| all.split(" and ").map(pair).collect()).collect()),
        }
    }

    /// Whether a logged-in user meets the needs, for a command on that database.
    pub fn are_met(&self, held: &Held, database: &str) -> bool {
        match self {
            Self::Nothing | Self::Login => true,
            Self::Everything => held.may_on("anyAction", |resource| is_on(resource, "anyResource")),
            Self::Actions(alternatives) => {
                alternatives.iter().any(|all| all.iter().all(|(action, resource)| held.may(action, resource, database)))
            }
        }
    }
}

/// The privileges of a user.
pub struct Held(DocumentBuf);

impl Held {
    /// Reads them from a reply of `connectionStatus`.
    pub fn of(status: &DocumentBuf) -> Self {
        let info = status.as_ref().get("authInfo").and_then(ValueRef::as_document).expect("authInfo");
        assert!(info.get("authenticatedUserPrivileges").is_some(), "{info:?}");
        Self(info.to_owned())
    }

    fn may(&self, action: &str, resource: &str, database: &str) -> bool {
        let on_all = |found: DocumentRef<'_>| is_named(found, "", "");
        match resource {
            "the cluster" => self.may_on(action, |found| is_on(found, "cluster")),
            "all databases" => self.may_on(action, on_all),
            "the database" => self.may_on(action, |found| on_all(found) || is_named(found, database, "")),
            "third" => self.may_on(action, |found| on_all(found) || is_named(found, "third", "")),
            _ => {
                let named = ["third", "admin"]
                    .into_iter()
                    .find_map(|name| Some((name, resource.strip_prefix(name)?.strip_prefix('.')?)));
                let (database, collection) = named.unwrap_or((database, resource));
                let is_normal = !collection.starts_with("system.");
                self.may_on(action, |found| {
                    is_normal && (on_all(found) || is_named(found, database, ""))
                        || is_named(found, database, collection)
                        || is_named(found, "", collection)
                        || collection
                            .strip_prefix("system.buckets.")
                            .is_some_and(|name| is_of_buckets(found, database, name))
                })
            }
        }
    }

    fn may_on(&self, action: &str, is_it: impl Fn(DocumentRef<'_>) -> bool) -> bool {
        let privileges = self.0.as_ref().get("authenticatedUserPrivileges").and_then(ValueRef::as_array);
        privileges.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document).any(|privilege| {
            let resource = privilege.get("resource").and_then(ValueRef::as_document).expect("a resource");
            let actions = privilege.get("actions").and_then(ValueRef::as_array).expect("actions");
            let has = |name: &str| actions.iter().any(|found| found.as_str() == Some(name));
            (has(action) || has("anyAction")) && (is_it(resource) || is_on(resource, "anyResource"))
        })
    }
}

fn is_on(resource: DocumentRef<'_>, name: &str) -> bool {
    matches!(resource.get(name), Some(ValueRef::Boolean(true)))
}

fn is_named(resource: DocumentRef<'_>, database: &str, collection: &str) -> bool {
    let is = |field: &str, name: &str| resource.get(field).and_then(ValueRef::as_str) == Some(name);
    is("db", database) && is("collection", collection)
}

fn is_of_buckets(resource: DocumentRef<'_>, database: &str, name: &str) -> bool {
    let is_any_or = |field: &str, wanted: &str| {
        let found = resource.get(field).and_then(ValueRef::as_str).unwrap_or_default();
        found.is_empty() || found == wanted
    };
    resource.get("system_buckets").is_some() && is_any_or("db", database) && is_any_or("system_buckets", name)
}
