//! Documents and entries of each keyspace, by segment. Updated as records are applied, and saved with each checkpoint
//! as of its watermark.

use crate::compression::Compression;
use crate::staging::segment_of_extent;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Effect, Effects, KeyspaceId, KeyspaceMap, Location, Lsn, Presence, segment_of, varint};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Bytes of one keyspace's documents in one segment of the log, or in the extent that took it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Bytes of documents that the newest state leads to.
    pub live: u64,
    /// Bytes of all documents that are stored there.
    pub total: u64,
}

/// Documents by segment, and entries in the trees, for all keyspaces.
#[derive(Default)]
pub(crate) struct Accounts {
    state: Mutex<Balances>,
}

/// One keyspace's account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Shares by segment. Copies of the account have them in common until one changes.
    shares: Arc<FxHashMap<u64, Share>>,
    /// Number of entries in the trees.
    pub entries: u64,
    /// The compressor, if the keyspace chose one.
    pub compression: Option<Compression>,
}

impl Account {
    fn share(&mut self, location: Location) -> &mut Share {
        Arc::make_mut(&mut self.shares).entry(segment_of(location.position)).or_default()
    }

    fn put(&mut self, location: Location) {
        let share = self.share(location);
        share.live += u64::from(location.length);
        share.total += u64::from(location.length);
    }

    /// Adds a document that replaces another one, which is often in the same segment.
    fn replace(&mut self, location: Location, replaced: Location) {
        let share = self.share(location);
        share.live += u64::from(location.length);
        share.total += u64::from(location.length);
        if segment_of(location.position) == segment_of(replaced.position) {
            share.live = share.live.saturating_sub(u64::from(replaced.length));
        } else {
            self.take(replaced);
        }
    }

    /// Adds a document to a share whose total includes it already.
    fn place(&mut self, location: Location) {
        let share = self.share(location);
        share.live += u64::from(location.length);
        share.total = share.total.max(share.live);
    }

    fn take(&mut self, location: Location) {
        if let Some(share) = Arc::make_mut(&mut self.shares).get_mut(&segment_of(location.position)) {
            share.live = share.live.saturating_sub(u64::from(location.length));
        }
    }

    fn uncount(&mut self) {
        self.entries = self.entries.saturating_sub(1);
    }

    /// Whether the keyspace has or had documents.
    pub fn has_documents(&self) -> bool {
        !self.shares.is_empty()
    }
}

/// The accounts at one moment. Cheap to copy, because a checkpoint copies them while writers wait.
#[derive(Clone, Default)]
pub(crate) struct Balances {
    accounts: KeyspaceMap<Account>,
    /// Dropped keyspaces with the drop's LSN, until the drop is durable and no view is older.
    dropped: KeyspaceMap<Lsn>,
}

impl Balances {
    fn drop_keyspace(&mut self, keyspace: KeyspaceId, lsn: Lsn) {
        self.accounts.remove(keyspace);
        self.dropped.insert(keyspace, lsn);
    }

    /// A keyspace's account; `None` if it has none.
    pub fn account(&self, keyspace: KeyspaceId) -> Option<&Account> {
        self.accounts.get(keyspace)
    }

    /// All accounts.
    pub fn accounts(&self) -> impl Iterator<Item = (KeyspaceId, &Account)> {
        self.accounts.iter()
    }

    /// Whether a keyspace was dropped, but perhaps not for every view.
    pub fn is_dropped(&self, keyspace: KeyspaceId) -> bool {
        self.dropped.contains(keyspace)
    }

    /// A keyspace's share of a segment; `None` if it has none.
    pub fn share(&self, keyspace: KeyspaceId, segment: u64) -> Option<Share> {
        self.account(keyspace)?.shares.get(&segment).copied()
    }

    /// All shares, with their keyspaces and segments.
    pub fn shares(&self) -> impl Iterator<Item = (KeyspaceId, u64, Share)> {
        self.accounts().flat_map(|(keyspace, account)| {
            account.shares.iter().map(move |(segment, share)| (keyspace, *segment, *share))
        })
    }

    /// Removes the shares for which `is_kept` is false.
    fn retain_shares(&mut self, is_kept: impl Fn(&Share, u64) -> bool) {
        let is_touched = |(keyspace, account): (KeyspaceId, &Account)| {
            account.shares.iter().any(|(segment, share)| !is_kept(share, *segment)).then_some(keyspace)
        };
        let touched: Vec<_> = self.accounts().filter_map(is_touched).collect();
        for keyspace in touched {
            let account = self.accounts.get_or_default(keyspace);
            Arc::make_mut(&mut account.shares).retain(|segment, share| is_kept(share, *segment));
        }
    }

    /// Live and total bytes by segment, summed over all keyspaces.
    pub fn by_segment(&self) -> FxHashMap<u64, Share> {
        let mut segments: FxHashMap<u64, Share> = FxHashMap::default();
        for (_, segment, share) in self.shares() {
            let of_segment = segments.entry(segment).or_default();
            of_segment.live += share.live;
            of_segment.total += share.total;
        }
        segments
    }
}

impl Accounts {
    /// Restores the accounts from a checkpoint's note; `None` if the note is malformed.
    pub fn restore(note: DocumentRef<'_>) -> Option<Self> {
        let mut state = Balances::default();
        for [keyspace, segment, live, total] in numbers(note.get("shares"))? {
            let account = state.accounts.get_or_default(keyspace_id(keyspace)?);
            Arc::make_mut(&mut account.shares).insert(segment, Share { live, total });
        }
        for [keyspace, count] in numbers(note.get("entries"))? {
            state.accounts.get_or_default(keyspace_id(keyspace)?).entries = count;
        }
        for value in note.get("compression").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter) {
            let document = value.as_document()?;
            let Some(ValueRef::Int64(keyspace)) = document.get("id") else { return None };
            let compression = Compression::from_settings(document).ok()??;
            let keyspace = keyspace_id(u64::try_from(keyspace).ok()?)?;
            state.accounts.get_or_default(keyspace).compression = Some(compression);
        }
        Some(Self { state: Mutex::new(state) })
    }

    /// Adds the accounts to a checkpoint's note.
    pub fn encode(state: &Balances, note: DocumentBuf) -> DocumentBuf {
        let shares = packed(
            state.shares().map(|(keyspace, segment, share)| [u64::from(keyspace.0), segment, share.live, share.total]),
        );
        let entries = packed(state.accounts().map(|(keyspace, account)| [u64::from(keyspace.0), account.entries]));
        let mut compression = ArrayBuf::new();
        for (keyspace, account) in state.accounts() {
            if let Some(chosen) = account.compression {
                compression.push(&chosen.settings().with("id", i64::from(keyspace.0)));
            }
        }
        note.with("shares", ValueRef::Binary { subtype: 0, bytes: &shares })
            .with("entries", ValueRef::Binary { subtype: 0, bytes: &entries })
            .with("compression", &compression)
    }

    pub fn apply(&self, lsn: Lsn, effects: Effects<'_>) {
        let mut state = self.state.lock();
        for effect in effects {
            match effect {
                Effect::PutRecord { keyspace, location, replaced, .. } => {
                    let account = state.accounts.get_or_default(keyspace);
                    match replaced {
                        Some(replaced) => account.replace(location, replaced),
                        None => {
                            account.put(location);
                            account.entries += 1;
                        }
                    }
                }
                Effect::AdoptFile { keyspace, number, documents_bytes } => {
                    let share = Share { live: 0, total: documents_bytes };
                    let account = state.accounts.get_or_default(keyspace);
                    Arc::make_mut(&mut account.shares).insert(segment_of_extent(number), share);
                }
                Effect::PlaceRecord { keyspace, location, .. } => {
                    let account = state.accounts.get_or_default(keyspace);
                    account.place(location);
                    account.entries += 1;
                }
                Effect::DeleteRecord { keyspace, replaced, .. } => {
                    if let Some(account) = state.accounts.get_mut(keyspace) {
                        account.take(replaced);
                        account.uncount();
                    }
                }
                Effect::PutKey { presence: Presence::Taken, .. }
                | Effect::PutPrimaryKey { presence: Presence::Moved | Presence::Taken, .. } => {}
                Effect::PutKey { keyspace, .. } | Effect::PutPrimaryKey { keyspace, .. } => {
                    state.accounts.get_or_default(keyspace).entries += 1;
                }
                Effect::DeleteKey { keyspace, .. } => {
                    if let Some(account) = state.accounts.get_mut(keyspace) {
                        account.uncount();
                    }
                }
                Effect::CreateKeyspace { keyspace, settings, .. } => {
                    let chosen = DocumentRef::parse(settings)
                        .ok()
                        .and_then(|settings| Compression::from_settings(settings).ok().flatten());
                    if chosen.is_some() {
                        state.accounts.get_or_default(keyspace).compression = chosen;
                    }
                }
                Effect::DropKeyspace { keyspace } => state.drop_keyspace(keyspace, lsn),
            }
        }
    }

    /// The compressor that a keyspace chose; `None` if it chose none.
    pub fn compression(&self, keyspace: KeyspaceId) -> Option<Compression> {
        self.state.lock().account(keyspace)?.compression
    }

    /// Keyspaces that a present or future view may read, or that a power cut may bring back.
    pub fn needed_keyspaces(&self) -> FxHashSet<KeyspaceId> {
        let state = self.state.lock();
        let kept = state.accounts().map(|(keyspace, _)| keyspace);
        kept.chain(state.dropped.iter().map(|(keyspace, _)| keyspace)).collect()
    }

    pub fn copy(&self) -> Balances {
        self.state.lock().clone()
    }

    /// Notes that segments were rewritten. `kept` has the bytes that remain, by keyspace and segment.
    pub fn rewritten(&self, segments: &[u64], kept: &FxHashMap<(KeyspaceId, u64), u64>) {
        let mut state = self.state.lock();
        let is_in = |account: &Account| segments.iter().any(|segment| account.shares.contains_key(segment));
        let in_them: Vec<_> =
            state.accounts().filter(|(_, account)| is_in(account)).map(|(keyspace, _)| keyspace).collect();
        for keyspace in in_them {
            let shares = Arc::make_mut(&mut state.accounts.get_or_default(keyspace).shares);
            for segment in segments {
                if let Some(share) = shares.get_mut(segment) {
                    share.total = kept.get(&(keyspace, *segment)).copied().unwrap_or(0);
                }
            }
        }
        state.retain_shares(|share, _| share.total > 0);
    }

    /// Removes shares of segments that no longer exist: a checkpoint may have noted segments that were removed after
    /// its watermark.
    pub fn forget_segments(&self, is_there: impl Fn(u64) -> bool) {
        self.state.lock().retain_shares(|share, segment| share.live > 0 || is_there(segment));
    }

    /// Forgets keyspaces that were dropped before `oldest_view`. No view may be older than that, and the log must be
    /// durable up to it.
    pub fn forget_dropped(&self, oldest_view: Lsn) {
        self.state.lock().dropped.retain(|_, lsn| *lsn >= oldest_view);
    }
}

fn keyspace_id(number: u64) -> Option<KeyspaceId> {
    u32::try_from(number).ok().map(KeyspaceId)
}

/// Encodes numbers for the note. A share takes a fifth of what it would take as array elements, and there may be one
/// for each collection in each segment.
fn packed<const N: usize>(rows: impl Iterator<Item = [u64; N]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in rows.flatten() {
        varint::put(&mut bytes, number);
    }
    bytes
}

/// Decodes rows of [`packed`] numbers; an absent value has no rows. `None` if the value is malformed.
fn numbers<const N: usize>(value: Option<ValueRef<'_>>) -> Option<Vec<[u64; N]>> {
    let mut rest = match value {
        None => return Some(Vec::new()),
        Some(ValueRef::Binary { bytes, .. }) => bytes,
        Some(_) => return None,
    };
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let mut row = [0; N];
        for number in &mut row {
            *number = varint::take(&mut rest)?;
        }
        rows.push(row);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_store::SEGMENT_BYTES;

    const RECORDS: KeyspaceId = KeyspaceId(4);

    fn location(position: u64, length: u32) -> Location {
        Location { position, length, checksum: 0 }
    }

    #[test]
    fn accounts_continue_from_the_checkpoints_note() {
        let mut state = Balances::default();
        let account = state.accounts.get_or_default(RECORDS);
        account.put(location(100, 30));
        account.put(location(SEGMENT_BYTES * 3, 50));
        account.take(location(100, 30));
        account.entries += 1;
        account.compression = Some(Compression::Zstd { level: 9 });
        let note = Accounts::encode(&state, DocumentBuf::new());
        let restored = Accounts::restore(note.as_ref()).expect("well-formed").copy();
        assert_eq!(restored.account(RECORDS), state.account(RECORDS));
        assert_eq!(restored.share(RECORDS, 0), Some(Share { live: 0, total: 30 }));
    }

    #[test]
    fn a_rewritten_segment_holds_the_kept_documents() {
        let accounts = Accounts::default();
        {
            let mut state = accounts.state.lock();
            let account = state.accounts.get_or_default(RECORDS);
            account.put(location(0, 10));
            account.put(location(20, 70));
            account.take(location(20, 70));
            account.put(location(SEGMENT_BYTES, 5));
        }
        accounts.rewritten(&[0], &[((RECORDS, 0), 10)].into_iter().collect());
        assert_eq!(accounts.copy().by_segment()[&0], Share { live: 10, total: 10 });
        accounts.rewritten(&[0], &FxHashMap::default());
        assert!(!accounts.copy().by_segment().contains_key(&0));
        assert_eq!(accounts.copy().by_segment()[&1], Share { live: 5, total: 5 });
    }
}
