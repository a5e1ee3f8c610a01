use super::fake::{Told, fake};
use super::*;
use crate::{Batch, RecordId};

const OWN: KeyspaceId = KeyspaceId(1);
const GUEST: KeyspaceId = KeyspaceId(2);
const VOLATILE: KeyspaceId = KeyspaceId(3);

/// A store's own engine with two others, and the records of their calls.
fn engines() -> (Engines, [Arc<Told>; 3]) {
    let (own, own_told) = fake("own", Survival::Durable);
    let (guest, guest_told) = fake("guest", Survival::Durable);
    let (volatile, volatile_told) = fake("volatile", Survival::Volatile);
    let table = EngineTable { own, others: vec![guest, volatile] };
    let engines = Engines::open(table, Path::new("."), &LogHandle::default(), &Clock::machine(), None).expect("opens");
    (engines, [own_told, guest_told, volatile_told])
}

fn created() -> (Engines, [Arc<Told>; 3]) {
    let (engines, told) = engines();
    let mut batch = Batch::new();
    batch.create_keyspace(OWN, "own", &[]);
    batch.create_keyspace(GUEST, "guest", &[]);
    batch.create_keyspace(VOLATILE, "volatile", &[]);
    engines.open_for(batch.effects(0)).expect("opens");
    engines.route(batch.effects(0));
    (engines, told)
}

/// Puts a key into each of the keyspaces.
fn puts(keyspaces: &[KeyspaceId]) -> Batch<'static> {
    let mut batch = Batch::new();
    for keyspace in keyspaces {
        batch.put_key(*keyspace, b"key", RecordId(1));
    }
    batch
}

#[test]
fn each_engine_applies_its_own_effects() {
    let (engines, told) = created();
    let mixed = puts(&[VOLATILE, OWN, GUEST, OWN]);
    engines.apply(Lsn(5), mixed.effects(0), Views::from(5)).expect("applied");
    engines.apply(Lsn(6), puts(&[GUEST]).effects(0), Views::from(6)).expect("applied");
    let applied = told.map(|told| told.applied.lock().clone());
    assert_eq!(applied, [vec![vec![1, 1]], vec![vec![2], vec![2]], vec![vec![3]]]);
}

#[test]
fn a_replay_spares_what_a_restart_empties() {
    let (engines, told) = engines();
    let mut batch = puts(&[OWN, GUEST, VOLATILE]);
    batch.create_keyspace(GUEST, "guest", &[]);
    batch.create_keyspace(VOLATILE, "volatile", &[]);
    let counted = Mutex::new(Vec::new());
    let count = |effects: Effects<'_>| counted.lock().extend(effects.map(|effect| effect.keyspace().0));
    engines.replay(Lsn(5), &batch.effects(0), &count).expect("replayed");
    let applied = told.map(|told| told.applied.lock().concat());
    assert_eq!(applied, [vec![1], vec![2, 2], vec![]]);
    assert_eq!(*counted.lock(), [1, 2, 2]);
    assert!(engines.is_volatile(VOLATILE) && !engines.is_volatile(GUEST) && !engines.is_volatile(OWN));
}

#[test]
fn only_batches_of_volatile_engines_stay_out_of_the_log() {
    let (engines, _) = created();
    let keeping = |keyspaces: &[KeyspaceId]| engines.keeping(puts(keyspaces).effects(0));
    assert_eq!(keeping(&[VOLATILE, VOLATILE]), Keeping::Place);
    assert_eq!(keeping(&[VOLATILE, OWN]), Keeping::Whole);
    assert_eq!(keeping(&[OWN, VOLATILE]), Keeping::Whole);
    assert_eq!(keeping(&[GUEST]), Keeping::Whole);
    assert_eq!(keeping(&[]), Keeping::Whole, "a batch that changes nothing may have notes");
    let mut drops = Batch::new();
    drops.drop_keyspace(VOLATILE);
    assert_eq!(engines.keeping(drops.effects(0)), Keeping::Whole);
}

#[test]
fn an_engine_is_opened_once_and_an_unknown_one_refused() {
    let (engines, told) = created();
    engines.ensure("guest", None).expect("is open");
    engines.lead(KeyspaceId(9), "guest");
    assert_eq!(told.map(|told| *told.opened.lock()), [1, 1, 1]);
    assert!(matches!(engines.ensure("none", None), Err(StorageError::UnknownEngine { name }) if name == "none"));
    assert_eq!(engines.all().iter().map(|engine| engine.name()).collect::<Vec<_>>(), ["own", "guest", "volatile"]);
}

#[test]
fn a_store_without_a_log_has_no_other_engine() {
    let (own, _) = fake("own", Survival::Volatile);
    let (guest, guest_told) = fake("guest", Survival::Durable);
    let table = EngineTable { own, others: vec![guest] };
    let engines = Engines::open(table, Path::new("."), &LogHandle::default(), &Clock::machine(), None).expect("opens");
    assert_eq!(engines.names(), ["own"]);
    assert!(matches!(engines.ensure("guest", None), Err(StorageError::UnknownEngine { .. })));
    assert_eq!(*guest_told.opened.lock(), 0);
}

#[test]
fn views_ask_the_engine_of_the_keyspace() {
    let (engines, _) = created();
    let before = engines.view(Lsn(5));
    engines.lead(KeyspaceId(9), "guest");
    let who = |view: &dyn View, keyspace| {
        let mut name = Vec::new();
        view.record(keyspace, RecordId(1), &mut name).expect("readable");
        String::from_utf8(name).expect("a name")
    };
    for view in [&*engines.view(Lsn(5)), engines.latest(), &*before] {
        assert_eq!([OWN, GUEST, VOLATILE].map(|keyspace| who(view, keyspace)), ["own", "guest", "volatile"]);
    }
    assert_eq!(who(engines.latest(), KeyspaceId(9)), "guest");
}

#[test]
fn a_dropped_keyspace_is_not_noted_but_still_found() {
    let (engines, _) = created();
    let mut batch = Batch::new();
    batch.drop_keyspace(GUEST);
    batch.drop_keyspace(OWN);
    engines.note_drops(batch.effects(0));
    assert_eq!(engines.routes(), [(VOLATILE, "volatile")]);
    assert_eq!(engines.of(GUEST).name(), "guest");
}

#[test]
fn only_engines_that_are_touched_are_asked_for_room() {
    let (engines, [own, guest, volatile]) = created();
    *volatile.room_bytes.lock() = Some(0);
    *own.room_bytes.lock() = Some(1000);
    assert!(guest.room_bytes.lock().is_none());
    let admit = |keyspaces: &[KeyspaceId], growth| engines.admit(&puts(keyspaces).effects(0), growth);
    admit(&[OWN, GUEST], 1000).expect("room enough");
    assert!(matches!(admit(&[OWN, GUEST], 1001), Err(StorageError::OutOfMemory { limit_bytes: 1000, .. })));
    assert!(matches!(admit(&[OWN, VOLATILE], 1), Err(StorageError::OutOfMemory { limit_bytes: 0, .. })));
    admit(&[VOLATILE], 0).expect("what asks for no room gets it");
}

#[test]
fn a_keyspace_leads_where_it_was_created_last() {
    let (engines, _) = created();
    let mut batch = Batch::new();
    batch.create_keyspace(VOLATILE, "own", &[]);
    batch.create_keyspace(OWN, "guest", &[]);
    engines.route(batch.effects(0));
    assert_eq!([OWN, GUEST, VOLATILE].map(|keyspace| engines.of(keyspace).name()), ["guest", "guest", "own"]);
    assert!(!engines.is_volatile(VOLATILE) && engines.keeping(puts(&[VOLATILE]).effects(0)) == Keeping::Whole);
}

#[test]
fn routes_that_the_catalog_does_not_know_are_removed() {
    let (engines, _) = created();
    let mut batch = Batch::new();
    batch.drop_keyspace(GUEST);
    engines.note_drops(batch.effects(0));
    let known = [(OWN, "own".to_owned()), (GUEST, "guest".to_owned())];
    assert!(engines.settle(&known).expect("settled"));
    assert!(!engines.settle(&known).expect("settled"));
    assert_eq!(engines.routes(), [(GUEST, "guest")]);
    assert_eq!(engines.of(VOLATILE).name(), "own");
    assert!(matches!(engines.settle(&[(OWN, "none".to_owned())]), Err(StorageError::UnknownEngine { .. })));
}

#[test]
fn a_route_needs_a_creation_in_the_log() {
    let (engines, told) = engines();
    let mut batch = Batch::new();
    batch.create_keyspace(VOLATILE, "volatile", &[]);
    engines.open_for(batch.effects(0)).expect("opens");
    assert_eq!(told.map(|told| *told.opened.lock()), [1, 0, 1]);
    assert_eq!(engines.of(VOLATILE).name(), "own");
    assert!(engines.routes().is_empty() && engines.keeping(puts(&[VOLATILE]).effects(0)) == Keeping::Whole);
}
