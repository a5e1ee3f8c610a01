//! The set's configuration: as a document, which clients see, and as the agreement knows it.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_replica::{Configuration, Lsn, MemberConfiguration, MemberId, Stamp, Timing};
use bunko_replica_set::{Listed, with_stamp, with_vote};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The agreement's view of a configuration's document. `base` is [`Configuration::base`].
/// # Errors
/// A sentence that names the field.
pub(crate) fn agreed(document: DocumentRef<'_>, base: Lsn) -> Result<Configuration, String> {
    let whole = |name: &str| {
        let value = document.get(name).and_then(number::as_i64_exact);
        value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| format!("'{name}' is not a whole number"))
    };
    let members = Listed::all(document)?.into_iter().map(|listed| MemberConfiguration {
        id: MemberId(listed.id),
        votes: listed.votes,
        priority: (listed.priority * 1000.0).ceil() as u32,
        arbiter: listed.arbiter,
        hidden: listed.hidden,
        delay_secs: listed.delay_secs,
        tags: listed.tags,
    });
    let (version, term, label) = (whole("version")?, whole("term")?, label(document));
    Ok(Configuration { version, term, base, label, members: members.collect() })
}

/// Tells a configuration from others, whatever its term and version.
fn label(document: DocumentRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    with_stamp(document, 0, 0).as_ref().as_bytes().hash(&mut hasher);
    hasher.finish()
}

/// The members that are to vote, and have no vote yet.
fn new_members(document: DocumentRef<'_>) -> Vec<MemberId> {
    let listed = Listed::all(document).unwrap_or_default();
    listed.iter().filter(|listed| listed.newly_added).map(|listed| MemberId(listed.id)).collect()
}

/// Periods that the configuration's settings say.
pub(crate) fn timing(document: DocumentRef<'_>) -> Timing {
    let settings = document.get("settings").and_then(ValueRef::as_document);
    let setting = |name: &str| {
        let value = settings.and_then(|settings| settings.get(name)).and_then(number::as_i64_exact);
        let value = value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
        value.map(|value| value.min(PERIOD_MS_MAX))
    };
    let default = Timing::default();
    let election_timeout_ms = setting("electionTimeoutMillis").unwrap_or(default.election_timeout_ms);
    // Several heartbeats may be lost before an election begins.
    let most = (election_timeout_ms / 5).max(1);
    Timing {
        election_timeout_ms,
        heartbeat_ms: setting("heartbeatIntervalMillis").unwrap_or(default.heartbeat_ms).min(most),
        span_bytes_max: SPAN_BYTES_MAX,
    }
}

/// Longest period, some 49 days; sums and multiples of it do not overflow.
const PERIOD_MS_MAX: u64 = u32::MAX as u64;

/// Maximum number of bytes of the log in one message, so that it is not a large message for the receiver's connection. A longer record
/// travels alone.
const SPAN_BYTES_MAX: u64 = 3 << 20;

/// The documents of the configurations that this member has met lately. The agreement knows a document by its label, and
/// gives it a new term and version.
pub(crate) struct Documents {
    current: (u64, DocumentBuf),
    /// The members of the current one that are to vote, and have no vote yet.
    new: Vec<MemberId>,
    others: Vec<(u64, DocumentBuf)>,
}

impl Documents {
    /// Configurations that may be on their way at the same time.
    const KEPT_MAX: usize = 4;

    pub(crate) fn new(current: DocumentBuf) -> Self {
        Self { new: new_members(current.as_ref()), current: (label(current.as_ref()), current), others: Vec::new() }
    }

    /// Notes a configuration that may come into use.
    pub(crate) fn note(&mut self, document: DocumentBuf) {
        let label = label(document.as_ref());
        self.others.retain(|(known, _)| *known != label);
        if self.others.len() == Self::KEPT_MAX {
            self.others.remove(0);
        }
        self.others.push((label, document));
    }

    /// Notes the configuration that is in use now.
    pub(crate) fn note_current(&mut self, document: DocumentBuf) {
        self.new = new_members(document.as_ref());
        let former = std::mem::replace(&mut self.current, (label(document.as_ref()), document));
        // A message with it may not be encoded yet.
        if former.0 != self.current.0 {
            self.note(former.1);
        }
    }

    /// The configuration in use with a vote for the first member that is to have one and has earned it.
    pub(crate) fn with_next_vote(
        &self,
        base: Lsn,
        has_earned: impl Fn(MemberId) -> bool,
    ) -> Option<(Configuration, DocumentBuf)> {
        let member = self.new.iter().find(|member| has_earned(**member))?;
        let document = with_vote(self.current.1.as_ref(), member.0);
        Some((agreed(document.as_ref(), base).ok()?, document))
    }

    /// The document of a configuration, with its term and version; the one in use, with its own, for one that is long over.
    pub(crate) fn of(&self, configuration: &Configuration) -> DocumentBuf {
        let mut known = self.others.iter().chain([&self.current]);
        let Some((_, document)) = known.find(|(label, _)| *label == configuration.label) else {
            return self.current.1.clone();
        };
        let Stamp { term, version } = configuration.stamp();
        with_stamp(document.as_ref(), term, version)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;

    /// A set of two data members and an arbiter.
    pub(crate) fn three() -> DocumentBuf {
        let members: ArrayBuf = [(0, false), (1, false), (4, true)]
            .iter()
            .map(|(id, arbiter)| {
                let priority = if *arbiter { 0.0 } else { 1.0 + f64::from(*id) };
                DocumentBuf::new()
                    .with("_id", *id)
                    .with("host", format!("localhost:{}", 7000 + id).as_str())
                    .with("arbiterOnly", *arbiter)
                    .with("priority", priority)
                    .with("votes", 1)
            })
            .collect::<Vec<_>>()
            .iter()
            .collect();
        let settings = DocumentBuf::new().with("electionTimeoutMillis", 2000).with("heartbeatIntervalMillis", 2000);
        DocumentBuf::new()
            .with("_id", "rs")
            .with("version", 3)
            .with("term", 2)
            .with("members", &members)
            .with("settings", &settings)
    }

    #[test]
    fn the_agreement_sees_members_and_periods() {
        let configuration = agreed(three().as_ref(), 9).expect("valid");
        assert_eq!((configuration.version, configuration.term, configuration.base), (3, 2, 9));
        let seen: Vec<_> = configuration.members.iter().map(|it| (it.id.0, it.priority, it.arbiter)).collect();
        assert_eq!(seen, [(0, 1000, false), (1, 2000, false), (4, 0, true)]);
        assert_eq!(configuration.check(), Ok(()));
        let timing = timing(three().as_ref());
        assert_eq!((timing.election_timeout_ms, timing.heartbeat_ms), (2000, 400));
    }

    #[test]
    fn a_configuration_finds_its_document_under_a_new_term() {
        let mut documents = Documents::new(three());
        let mut other = agreed(three().as_ref(), 0).expect("valid");
        other.term = 7;
        let document = documents.of(&other);
        assert_eq!(agreed(document.as_ref(), 0), Ok(other.clone()));
        // Documents that were refused take the place of none that is in use.
        for timeout in 0..10 {
            let settings = DocumentBuf::new().with("electionTimeoutMillis", 5000 + timeout);
            documents.note(three().with("settings", &settings));
        }
        assert_eq!(documents.others.len(), Documents::KEPT_MAX);
        assert_eq!(documents.of(&other), document);
    }

    #[test]
    fn no_configuration_gets_the_document_of_another_one() {
        let settings = |timeout: i32| DocumentBuf::new().with("electionTimeoutMillis", timeout);
        let next = |timeout: i32| three().with("settings", &settings(timeout));
        let mut documents = Documents::new(three());
        let former = agreed(three().as_ref(), 0).expect("valid");
        documents.note_current(next(1));
        assert_eq!(agreed(documents.of(&former).as_ref(), 0), Ok(former.clone()));
        for timeout in 2..8 {
            documents.note_current(next(timeout));
        }
        assert_eq!(documents.of(&former), next(7));
    }

    #[test]
    fn a_new_member_that_has_earned_its_vote_waits_for_no_other_one() {
        let member = |id: i32| {
            let host = format!("localhost:{}", 7000 + id);
            DocumentBuf::new().with("_id", id).with("host", host.as_str()).with("newlyAdded", id > 0)
        };
        let members: ArrayBuf = [0, 1, 2].map(member).iter().collect();
        let document =
            DocumentBuf::new().with("_id", "rs").with("version", 1).with("term", 1).with("members", &members);
        let documents = Documents::new(document);
        assert!(documents.with_next_vote(0, |_| false).is_none());
        let (next, _) = documents.with_next_vote(0, |member| member == MemberId(2)).expect("it has earned its vote");
        let voters: Vec<_> = next.voters().map(|voter| voter.id.0).collect();
        assert_eq!(voters, [0, 2]);
    }
}
