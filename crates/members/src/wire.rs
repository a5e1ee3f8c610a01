//! Messages of the agreement as BSON documents.

use crate::configuration::agreed;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_replica::{Body, Configuration, MemberId, Message, Position, Stamp};
use std::sync::Arc;

/// The field with the host of the sender, as the sender's configuration names them. Two servers may have one id one after
/// the other, and one server two, but no server has the name of another.
pub const FROM_HOST: &str = "fromHost";
/// The field with the host of the receiver, as [`FROM_HOST`].
pub const TO_HOST: &str = "toHost";
/// The field of an answer that tells a removed member the configuration that does not list it.
pub(crate) const NEWS: &str = "news";

/// The document of a stamp.
pub(crate) fn of_stamp(stamp: Stamp) -> DocumentBuf {
    DocumentBuf::new().with("term", stamp.term as i64).with("version", stamp.version as i64)
}

/// The configuration in the answer to a member that was removed.
pub(crate) fn decode_news(news: DocumentRef<'_>) -> Result<(Configuration, DocumentBuf), String> {
    let (news, document) = (Fields(news), Fields(news).document("document")?.0);
    Ok((agreed(document, news.whole("base")?)?, document.to_owned()))
}

/// The document of a message. `shown` returns the document of a configuration.
pub(crate) fn encode(message: &Message, shown: impl FnOnce(&Configuration) -> DocumentBuf) -> DocumentBuf {
    let body = match &message.body {
        Body::PreVote { position } => kind("preVote").with("position", &of_position(*position)),
        Body::PreVoteAnswer { granted } => kind("preVoteAnswer").with("granted", *granted),
        Body::RequestVote { position } => kind("requestVote").with("position", &of_position(*position)),
        Body::VoteAnswer { granted } => kind("voteAnswer").with("granted", *granted),
        Body::Heartbeat { commit, round } => {
            kind("heartbeat").with("commit", *commit as i64).with("round", *round as i64)
        }
        Body::Fetch { position, synced, round, searching } => kind("fetch")
            .with("position", &of_position(*position))
            .with("synced", *synced as i64)
            .with("round", *round as i64)
            .with("searching", *searching),
        Body::Heard { round } => kind("heard").with("round", *round as i64),
        Body::Span { from, to, commit } => {
            kind("span").with("from", &of_position(*from)).with("to", *to as i64).with("commit", *commit as i64)
        }
        Body::Diverged { asked, at } => {
            kind("diverged").with("asked", &of_position(*asked)).with("at", &of_position(*at))
        }
        Body::Reclaimed { start } => kind("reclaimed").with("start", *start as i64),
        Body::CampaignNow => kind("campaignNow"),
        Body::Configuration(configuration) => {
            kind("configuration").with("base", configuration.base as i64).with("document", &shown(configuration))
        }
    };
    let stamp = of_stamp(message.configuration);
    DocumentBuf::new()
        .with("from", i64::from(message.from.0))
        .with("term", message.term as i64)
        .with("configuration", &stamp)
        .with("body", &body)
}

fn kind(name: &str) -> DocumentBuf {
    DocumentBuf::new().with("kind", name)
}

fn of_position(position: Position) -> DocumentBuf {
    DocumentBuf::new().with("term", position.term as i64).with("end", position.end as i64)
}

/// A message, with the document of the configuration that it brings.
pub(crate) type Decoded = (Message, Option<DocumentBuf>);

/// Reads a message. The error names the field that is missing or malformed.
pub(crate) fn decode(document: DocumentRef<'_>) -> Result<Decoded, String> {
    let message = Fields(document);
    let stamp = message.document("configuration")?;
    let body = message.document("body")?;
    let mut shown = None;
    let decoded = match body.0.get("kind").and_then(ValueRef::as_str) {
        Some("preVote") => Body::PreVote { position: body.position("position")? },
        Some("preVoteAnswer") => Body::PreVoteAnswer { granted: body.boolean("granted")? },
        Some("requestVote") => Body::RequestVote { position: body.position("position")? },
        Some("voteAnswer") => Body::VoteAnswer { granted: body.boolean("granted")? },
        Some("heartbeat") => Body::Heartbeat { commit: body.whole("commit")?, round: body.whole("round")? },
        Some("fetch") => Body::Fetch {
            position: body.position("position")?,
            synced: body.whole("synced")?,
            round: body.whole("round")?,
            searching: body.boolean("searching")?,
        },
        Some("heard") => Body::Heard { round: body.whole("round")? },
        Some("span") => {
            Body::Span { from: body.position("from")?, to: body.whole("to")?, commit: body.whole("commit")? }
        }
        Some("diverged") => Body::Diverged { asked: body.position("asked")?, at: body.position("at")? },
        Some("reclaimed") => Body::Reclaimed { start: body.whole("start")? },
        Some("campaignNow") => Body::CampaignNow,
        Some("configuration") => {
            let document = body.document("document")?.0;
            shown = Some(document.to_owned());
            Body::Configuration(Arc::new(agreed(document, body.whole("base")?)?))
        }
        _ => return Err("the message is of no known kind".to_owned()),
    };
    let decoded = Message {
        from: message.member("from")?,
        term: message.whole("term")?,
        configuration: stamp.stamp()?,
        body: decoded,
    };
    Ok((decoded, shown))
}

/// The fields of a document from another member.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) DocumentRef<'a>);

impl Fields<'_> {
    pub(crate) fn whole(self, name: &str) -> Result<u64, String> {
        let value = self.0.get(name).and_then(number::as_i64_exact);
        value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| format!("'{name}' is not a whole number"))
    }

    pub(crate) fn member(self, name: &str) -> Result<MemberId, String> {
        u32::try_from(self.whole(name)?).map(MemberId).map_err(|_| format!("'{name}' is not a member"))
    }

    fn boolean(self, name: &str) -> Result<bool, String> {
        match self.0.get(name) {
            Some(ValueRef::Boolean(value)) => Ok(value),
            _ => Err(format!("'{name}' is not a boolean")),
        }
    }

    pub(crate) fn document(self, name: &str) -> Result<Self, String> {
        self.0.get(name).and_then(ValueRef::as_document).map(Self).ok_or_else(|| format!("'{name}' is not a document"))
    }

    pub(crate) fn stamp(self) -> Result<Stamp, String> {
        Ok(Stamp { term: self.whole("term")?, version: self.whole("version")? })
    }

    fn position(self, name: &str) -> Result<Position, String> {
        let position = self.document(name)?;
        Ok(Position { term: position.whole("term")?, end: position.whole("end")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::tests::three;

    fn bodies() -> Vec<Body> {
        let (position, other) = (Position { term: 3, end: 70 }, Position { term: 2, end: 50 });
        vec![
            Body::PreVote { position },
            Body::PreVoteAnswer { granted: true },
            Body::RequestVote { position },
            Body::VoteAnswer { granted: false },
            Body::Heartbeat { commit: 9, round: 4 },
            Body::Fetch { position, synced: 60, round: 4, searching: true },
            Body::Heard { round: 1 },
            Body::Span { from: position, to: 90, commit: 80 },
            Body::Diverged { asked: position, at: other },
            Body::Reclaimed { start: 40 },
            Body::CampaignNow,
            Body::Configuration(Arc::new(agreed(three().as_ref(), 12).expect("valid"))),
        ]
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for body in bodies() {
            let message = Message { from: MemberId(2), term: 5, configuration: Stamp { term: 4, version: 3 }, body };
            let document = encode(&message, |_| three());
            let (read, shown) = decode(document.as_ref()).expect("well-formed");
            assert_eq!(read, message);
            assert_eq!(shown.is_some(), matches!(message.body, Body::Configuration(_)));
        }
    }

    #[test]
    fn each_missing_field_is_named() {
        for body in bodies() {
            let message = Message { from: MemberId(2), term: 5, configuration: Stamp::default(), body };
            let document = encode(&message, |_| three());
            for removed in ["from", "term", "configuration", "body"] {
                let mut cut = DocumentBuf::new();
                document.as_ref().iter().filter(|field| field.name != removed).for_each(|field| {
                    cut.append(field.name, field.value);
                });
                let error = decode(cut.as_ref()).expect_err(removed);
                assert!(error.contains(removed), "{error}");
            }
            let body = document.as_ref().get("body").and_then(ValueRef::as_document).expect("a body");
            for removed in body.iter().map(|field| field.name) {
                let mut cut = DocumentBuf::new();
                body.iter().filter(|field| field.name != removed).for_each(|field| {
                    cut.append(field.name, field.value);
                });
                let mut whole = DocumentBuf::new();
                document.as_ref().iter().filter(|field| field.name != "body").for_each(|field| {
                    whole.append(field.name, field.value);
                });
                let error = decode(whole.with("body", &cut).as_ref()).expect_err(removed);
                assert!(error.contains(removed), "{error}");
            }
        }
    }
}
