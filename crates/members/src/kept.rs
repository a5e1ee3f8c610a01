//! The file `member`: which member of which set this server is. It lies beside the log, because the log is the same on
//! all members.
//!
//! The file `joining` has the same contents. It says that the data in the directory are of no use, because the server
//! joins a set that others have begun; the next start deletes the data and renames the file.
//!
//! **Invariant:** a configuration is durable before the agreement uses it.

use crate::configuration::agreed;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, ValueRef, number};
use bunko_replica::{Lsn, MemberId, Memory};
use bunko_replica_set::Listed;
use bunko_store::{StorageError, checked_documents};
use std::path::Path;

const MEMBER: &str = "member";
const JOINING: &str = "joining";
/// The id of a server that another one has replaced under its own: the configuration does not list it.
pub(crate) const REPLACED: MemberId = MemberId(u32::MAX);
/// The field that says that a member has lost its files, and does not remember enough yet; in the file, and in answers.
pub(crate) const LOST: &str = "memoryLost";
/// The field with the delay of a member, in seconds, which a configuration without the member does not say.
const DELAY: &str = "secondaryDelaySecs";
/// The field with the server that is invited, as in [`Kept::offered`].
const SERVER: &str = "server";

/// The member that this server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its `_id`.
    pub id: MemberId,
    /// `host:port` under which the set knows it, also once it is removed.
    pub host: String,
    /// The set's configuration, as `replSetGetConfig` shows it.
    pub configuration: DocumentBuf,
    /// See [`bunko_replica::Configuration::base`].
    pub base: Lsn,
    /// The members that this member invites to join as new ones: it has initiated the set with them, or added them, and has
    /// not heard from them as members yet.
    pub invited: Vec<MemberId>,
    /// The server that is invited as each of these: the id of the set of one that it has begun. It has that id no more once it
    /// has joined.
    pub offered: Vec<(MemberId, ObjectId)>,
    /// Whether its files were lost since it became a member. [`Memory::Floor`] is kept as [`Memory::Lost`].
    pub memory: Memory,
    /// The time after which it applies records, in seconds: that of the last configuration that lists it.
    pub delay_secs: u64,
}

impl Kept {
    /// Whether the member applies records later than the others.
    pub fn is_delayed(&self) -> bool {
        self.delay_secs > 0
    }

    /// Takes over a configuration. A member that it does not list keeps its delay.
    pub(crate) fn with_configuration(self, id: MemberId, configuration: DocumentBuf, base: Lsn) -> Self {
        let delay_secs = delay_of(configuration.as_ref(), id).unwrap_or(self.delay_secs);
        Self { id, configuration, base, delay_secs, ..self }
    }

    /// Reads the file of a data directory; `None` for a server that is in no set of several members.
    /// # Errors
    /// Errors of the file; [`StorageError::Corrupt`].
    pub fn read(directory: &Path) -> Result<Option<Self>, StorageError> {
        let path = directory.join(MEMBER);
        let Some(document) = checked_documents::read_one(&path)? else { return Ok(None) };
        let kept = Self::parse(document.as_ref());
        let found = "names no member or no configuration".to_owned();
        kept.map(Some).ok_or(StorageError::Corrupt { file: path, offset_bytes: 0, found })
    }

    fn parse(document: DocumentRef<'_>) -> Option<Self> {
        let whole = |value: ValueRef<'_>| number::as_i64_exact(value).and_then(|whole| u64::try_from(whole).ok());
        let id = |value: ValueRef<'_>| whole(value).and_then(|id| u32::try_from(id).ok()).map(MemberId);
        let own = id(document.get("_id")?)?;
        let configuration = document.get("configuration")?.as_document()?;
        let offer = |value: ValueRef<'_>| -> Option<(MemberId, ObjectId)> {
            let offer = value.as_document()?;
            let ValueRef::ObjectId(server) = offer.get(SERVER)? else { return None };
            Some((id(offer.get("_id")?)?, server))
        };
        let offered = match document.get("offered") {
            Some(offered) => offered.as_array()?.iter().map(offer).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        let host = match document.get("host") {
            Some(host) => host.as_str()?.to_owned(),
            None => host_of(configuration, own).unwrap_or_default(),
        };
        // Files of earlier versions have no delay of their own.
        let delay_secs = delay_of(configuration, own).or_else(|| document.get(DELAY).and_then(whole));
        Some(Self {
            id: own,
            host,
            delay_secs: delay_secs.unwrap_or(0),
            configuration: configuration.to_owned(),
            base: whole(document.get("base")?)?,
            invited: document.get("invited")?.as_array()?.iter().map(id).collect::<Option<_>>()?,
            offered,
            memory: if document.get(LOST).is_some() { Memory::Lost } else { Memory::Kept },
        })
    }

    fn document(&self) -> DocumentBuf {
        let invited: ArrayBuf = self.invited.iter().map(|id| i64::from(id.0)).collect();
        let mut document = DocumentBuf::new()
            .with("_id", i64::from(self.id.0))
            .with("host", self.host.as_str())
            .with("configuration", &self.configuration)
            .with("base", self.base as i64)
            .with("invited", &invited);
        if !self.offered.is_empty() {
            let offer = |(id, server): &(MemberId, ObjectId)| {
                DocumentBuf::new().with("_id", i64::from(id.0)).with(SERVER, *server)
            };
            let offered: ArrayBuf = self.offered.iter().map(offer).collect::<Vec<_>>().iter().collect();
            document.append("offered", &offered);
        }
        if self.memory != Memory::Kept {
            document.append(LOST, true);
        }
        if self.delay_secs > 0 {
            document.append(DELAY, self.delay_secs as i64);
        }
        document
    }

    /// The invitation of another member of the set: of one server, or of any that has lost its files.
    pub(crate) fn invitation(&self, member: MemberId, server: Option<ObjectId>) -> DocumentBuf {
        let host = host_of(self.configuration.as_ref(), member).unwrap_or_default();
        let memory = if server.is_some() { Memory::Kept } else { Memory::Lost };
        let (configuration, base) = (self.configuration.clone(), self.base);
        let (invited, offered, delay_secs) = (Vec::new(), Vec::new(), 0);
        let invited = Self { id: member, host, configuration, base, invited, offered, memory, delay_secs };
        let mut invitation = invited.document();
        if let Some(server) = server {
            invitation.append(SERVER, server);
        }
        invitation
    }

    /// Whether an invitation is meant for the server that has begun a set of one with that id.
    pub fn is_meant_for(invitation: DocumentRef<'_>, server: ObjectId) -> bool {
        match invitation.get(SERVER) {
            Some(ValueRef::ObjectId(meant)) => meant == server,
            Some(_) => false,
            None => true,
        }
    }

    /// The member that an invitation makes of this server.
    /// # Errors
    /// If the invitation is malformed.
    pub fn of_invitation(invitation: DocumentRef<'_>) -> Result<Self, String> {
        let kept = Self::parse(invitation).ok_or("the invitation names no member or no configuration")?;
        let configuration = agreed(kept.configuration.as_ref(), kept.base)?;
        configuration.check().map_err(|invalid| format!("{invalid:?}"))?;
        configuration.member(kept.id).ok_or("the invitation's configuration does not list the member")?;
        Ok(kept)
    }

    /// Replaces the file; on return it is durable.
    /// # Errors
    /// Errors of the file.
    pub fn write(&self, directory: &Path) -> Result<(), StorageError> {
        checked_documents::replace(&directory.join(MEMBER), &[self.document()])
    }

    /// Notes that the next start deletes the data and becomes this member.
    /// # Errors
    /// Errors of the file.
    pub fn write_joining(&self, directory: &Path) -> Result<(), StorageError> {
        checked_documents::replace(&directory.join(JOINING), &[self.document()])
    }
}

/// The delay of a member in a configuration, in seconds; `None` if it does not list the member.
fn delay_of(configuration: DocumentRef<'_>, member: MemberId) -> Option<u64> {
    let listed = Listed::all(configuration).ok()?;
    listed.into_iter().find(|listed| listed.id == member.0).map(|listed| listed.delay_secs)
}

/// The host of a member in a configuration.
pub(crate) fn host_of(configuration: DocumentRef<'_>, member: MemberId) -> Option<String> {
    let listed = Listed::all(configuration).ok()?;
    listed.into_iter().find(|listed| listed.id == member.0).map(|listed| listed.host)
}

/// Deletes the data of a server that joins a set, and puts data that an initial sync has copied in their place. Call it before the directory is opened.
/// # Errors
/// Errors of the files; [`StorageError::Locked`] if another process has the directory open.
pub fn finish_joining(directory: &Path) -> Result<(), StorageError> {
    bunko_store::begin_again(directory, JOINING, MEMBER)?;
    bunko_store::finish_installing(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::tests::three;
    use std::fs;

    fn kept() -> Kept {
        let configuration = DocumentBuf::new().with("_id", "rs");
        let invited = vec![MemberId(1), MemberId(2)];
        let host = "localhost:7003".to_owned();
        let offered = vec![(MemberId(2), ObjectId::from_parts(7, [1; 5], 9))];
        let (base, memory, delay_secs) = (77, Memory::Kept, 3600);
        Kept { id: MemberId(3), host, configuration, base, invited, offered, memory, delay_secs }
    }

    #[test]
    fn a_member_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(Kept::read(directory.path()).expect("none"), None);
        kept().write(directory.path()).expect("written");
        assert_eq!(Kept::read(directory.path()).expect("read"), Some(kept()));
        let lost = Kept { memory: Memory::Lost, ..kept() };
        lost.write(directory.path()).expect("written");
        assert_eq!(Kept::read(directory.path()).expect("read"), Some(lost));
    }

    #[test]
    fn a_member_keeps_its_delay_when_it_is_removed() {
        let member = |id: i32, delay: i32| {
            let host = format!("localhost:{}", 7000 + id);
            DocumentBuf::new().with("_id", id).with("host", host.as_str()).with("secondaryDelaySecs", delay)
        };
        let with = |members: &[DocumentBuf]| {
            DocumentBuf::new().with("_id", "rs").with("members", &members.iter().collect::<ArrayBuf>())
        };
        let listed = kept().with_configuration(MemberId(3), with(&[member(0, 0), member(3, 60)]), 77);
        let read = |kept: &Kept| Kept::parse(kept.document().as_ref()).expect("a member");
        assert_eq!((listed.delay_secs, read(&listed).delay_secs), (60, 60));
        let removed = listed.with_configuration(MemberId(3), with(&[member(0, 0)]), 77);
        assert_eq!((removed.delay_secs, read(&removed)), (60, removed.clone()));
        let prompt = removed.with_configuration(MemberId(3), with(&[member(0, 0), member(3, 0)]), 77);
        assert_eq!((prompt.is_delayed(), read(&prompt).is_delayed()), (false, false));
    }

    #[test]
    fn a_file_without_a_host_has_that_of_the_configuration() {
        let document = Kept { id: MemberId(1), configuration: three(), ..kept() }.document();
        let mut older = DocumentBuf::new();
        document.as_ref().iter().filter(|field| field.name != "host").for_each(|field| {
            older.append(field.name, field.value);
        });
        assert_eq!(Kept::parse(older.as_ref()).map(|kept| kept.host).as_deref(), Some("localhost:7001"));
    }

    #[test]
    fn an_invitation_names_a_member_of_its_configuration() {
        let invitation = |id| Kept { id: MemberId(id), configuration: three(), ..kept() }.document();
        assert_eq!(Kept::of_invitation(invitation(4).as_ref()).map(|kept| kept.id), Ok(MemberId(4)));
        assert!(Kept::of_invitation(invitation(3).as_ref()).is_err());
    }

    #[test]
    fn an_invitation_of_a_new_member_is_for_one_server() {
        let inviting = Kept { configuration: three(), ..kept() };
        let (server, other) = (ObjectId::from_parts(7, [1; 5], 9), ObjectId::from_parts(7, [1; 5], 10));
        let (new, lost) = (inviting.invitation(MemberId(4), Some(server)), inviting.invitation(MemberId(4), None));
        let is_meant_for = |server| [&new, &lost].map(|it| Kept::is_meant_for(it.as_ref(), server));
        assert_eq!((is_meant_for(server), is_meant_for(other)), ([true, true], [false, true]));
        let memory = |invitation: &DocumentBuf| Kept::of_invitation(invitation.as_ref()).map(|kept| kept.memory);
        assert_eq!((memory(&new), memory(&lost)), (Ok(Memory::Kept), Ok(Memory::Lost)));
    }

    #[test]
    fn joining_deletes_the_data_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("log")).expect("made");
        for name in ["log/000000000000.segment", "manifest.bson", "server.log"] {
            fs::write(path(name), b"contents").expect("written");
        }
        finish_joining(directory.path()).expect("there is nothing to do");
        assert!(path("manifest.bson").exists());
        kept().write_joining(directory.path()).expect("written");
        finish_joining(directory.path()).expect("joined");
        assert_eq!(Kept::read(directory.path()).expect("read"), Some(kept()));
        assert!(!path("log").exists() && !path("manifest.bson").exists() && !path("joining").exists());
        assert!(path("server.log").exists());
    }
}
