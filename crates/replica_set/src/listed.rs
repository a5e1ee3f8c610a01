//! The members that a configuration lists.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};

/// A member, as the configuration lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its `_id`.
    pub id: u32,
    /// `host:port`.
    pub host: String,
    /// Whether it is to vote, but does not yet, because it has too little of the log.
    pub newly_added: bool,
    /// Whether it votes.
    pub votes: bool,
    /// 0 never becomes primary.
    pub priority: f64,
    /// Whether it votes and has no data.
    pub arbiter: bool,
    /// Whether clients do not see it.
    pub hidden: bool,
    /// How long it waits before it applies a record, in seconds.
    pub delay_secs: u64,
    /// Its tags.
    pub tags: Vec<(String, String)>,
    /// Its `host:port` in each horizon.
    pub(crate) horizons: Vec<(String, String)>,
}

/// The field of a member that has no vote yet, although the client has given it one. The primary removes the field once the member
/// has all that is committed. Clients do not see it. Source: MongoDB manual 8.2, `replSetReconfig`.
pub(crate) const NEWLY_ADDED: &str = "newlyAdded";

impl Listed {
    /// Whether the client has given it a vote.
    pub fn is_to_vote(&self) -> bool {
        self.votes || self.newly_added
    }

    /// The members of a complete configuration.
    /// # Errors
    /// A sentence that names the field that is missing or malformed.
    pub fn all(configuration: DocumentRef<'_>) -> Result<Vec<Self>, String> {
        let members = configuration.get("members").and_then(ValueRef::as_array).ok_or("'members' is not an array")?;
        let each = members.iter().enumerate().map(|(index, member)| {
            let member = member.as_document().ok_or_else(|| format!("'members.{index}' is not a document"))?;
            Self::of(member).ok_or_else(|| format!("'members.{index}' has no _id or no host"))
        });
        each.collect()
    }

    fn of(member: DocumentRef<'_>) -> Option<Self> {
        let whole = |name: &str| member.get(name).and_then(number::as_i64_exact);
        let is_on = |name: &str| member.get(name).is_some_and(bunko_request::fields::truth);
        let newly_added = is_on(NEWLY_ADDED);
        let texts = |name: &str| {
            let texts = member.get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
            texts.iter().filter_map(|text| Some((text.name.to_owned(), text.value.as_str()?.to_owned()))).collect()
        };
        Some(Self {
            id: u32::try_from(whole("_id")?).ok()?,
            host: member.get("host")?.as_str()?.to_owned(),
            newly_added,
            votes: !newly_added && whole("votes").is_none_or(|votes| votes != 0),
            priority: if newly_added { 0.0 } else { member.get("priority").and_then(number::as_f64).unwrap_or(1.0) },
            arbiter: is_on("arbiterOnly"),
            hidden: is_on("hidden"),
            delay_secs: whole("secondaryDelaySecs").and_then(|delay| u64::try_from(delay).ok()).unwrap_or(0),
            tags: texts("tags"),
            horizons: texts("horizons"),
        })
    }

    /// Its tags as a document.
    pub fn tags(&self) -> DocumentBuf {
        self.tags.iter().fold(DocumentBuf::new(), |tags, (name, value)| tags.with(name, value.as_str()))
    }
}
