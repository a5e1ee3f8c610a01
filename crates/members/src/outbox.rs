//! The messages that wait for a link: the newest of each kind.
//!
//! The agreement repeats what is lost, so an older message of a kind may go when a newer one comes.

use bunko_replica::{Body, Message};
use std::collections::VecDeque;
use std::mem::{Discriminant, discriminant};

/// Messages to one member, in the order in which they are sent. There are never more than there are kinds.
#[derive(Default)]
pub(crate) struct Outbox(VecDeque<(Discriminant<Body>, Message)>);

impl Outbox {
    /// Adds a message after the others, in place of an earlier one of its kind.
    pub(crate) fn put(&mut self, message: Message) {
        let kind = discriminant(&message.body);
        self.0.retain(|(other, _)| *other != kind);
        self.0.push_back((kind, message));
    }

    /// The first message that brings no bytes of the log.
    pub(crate) fn take_without_bytes(&mut self) -> Option<Message> {
        let index = self.0.iter().position(|(_, message)| !matches!(message.body, Body::Span { .. }))?;
        self.0.remove(index).map(|(_, message)| message)
    }

    pub(crate) fn take(&mut self) -> Option<Message> {
        self.0.pop_front().map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_replica::{MemberId, Stamp};

    #[test]
    fn a_newer_message_takes_the_place_of_its_kind() {
        let message = |body| Message { from: MemberId(0), term: 1, configuration: Stamp::default(), body };
        let heartbeat = |round| message(Body::Heartbeat { commit: 5, round });
        let mut outbox = Outbox::default();
        outbox.put(heartbeat(1));
        outbox.put(message(Body::CampaignNow));
        outbox.put(heartbeat(2));
        let position = bunko_replica::Position { term: 1, end: 5 };
        outbox.put(message(Body::Span { from: position, to: 9, commit: 5 }));
        assert_eq!(outbox.take_without_bytes(), Some(message(Body::CampaignNow)));
        outbox.put(message(Body::CampaignNow));
        assert_eq!(outbox.take_without_bytes(), Some(heartbeat(2)));
        assert_eq!(outbox.take_without_bytes(), Some(message(Body::CampaignNow)));
        assert!(outbox.take_without_bytes().is_none());
        assert!(matches!(outbox.take().map(|message| message.body), Some(Body::Span { .. })));
        outbox.put(message(Body::CampaignNow));
        outbox.put(heartbeat(2));
        let sent: Vec<_> = std::iter::from_fn(|| outbox.take()).collect();
        assert_eq!(sent, [message(Body::CampaignNow), heartbeat(2)]);
    }
}
