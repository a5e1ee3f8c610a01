//! Images of a store with each durable engine: made while writers run, read in ranges, received, installed, opened.

use bunko_conformance::directory::Directory;
use bunko_conformance::roster::{each_durable_engine, engines, survival};
use bunko_conformance::subject;
use bunko_engines::Entry;
use bunko_store::{
    Batch, Direction, Image, ImageList, ImageState, KeyspaceId, Lsn, ReceivedImage, RecordId, RecordRange,
    StorageError, Store, Survival, View, finish_installing,
};
use bunko_testkit::patience::wait_for;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const RECORDS: KeyspaceId = KeyspaceId(5);

fn open(path: &Path, own: &Entry) -> Arc<Store> {
    subject::open(path, own).expect("opens")
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(100).into_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) -> Lsn {
    let mut last = Lsn(0);
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        last = store.commit(&batch).expect("committed");
        store.write(last).expect("written");
    }
    last
}

/// The numbers of the records, which must be all up to the last one.
fn count(view: &dyn View) -> u64 {
    let mut cursor = view.records(RECORDS, RecordRange::ALL, Direction::Forward);
    let mut seen = 0;
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        assert_eq!((record.0, bytes == document(seen).as_slice()), (seen, true));
        seen += 1;
    }
    seen
}

fn ready(image: &Image) -> Arc<ImageList> {
    wait_for(|| match image.state() {
        ImageState::Ready(list) => Ok(list),
        ImageState::Preparing => Err("the image is not ready".to_owned()),
        ImageState::Failed(reason) => panic!("{reason}"),
    })
}

/// Receives up to `ranges_max` ranges.
fn receive(image: &Image, received: &mut ReceivedImage, ranges_max: usize) {
    let mut bytes = Vec::new();
    for _ in 0..ranges_max {
        let Some(wanted) = received.wanted() else { break };
        let checksum = image.read(&wanted.name, wanted.offset, &mut bytes).expect("read");
        received.put(&wanted, &bytes, checksum).expect("whole");
    }
}

fn resumed(path: &Path) -> (ReceivedImage, usize) {
    let mut received = ReceivedImage::resume(path).expect("readable").expect("begun");
    let damaged = received.verify(&mut || ()).expect("readable");
    (received, damaged)
}

/// Installs an image. A child process that another test starts holds the directory's lock until it runs its program.
fn install(path: &Path) {
    wait_for(|| finish_installing(path).map_err(|error| error.to_string()));
}

#[test]
fn an_image_made_beside_writers_is_the_state_of_one_moment() {
    each_durable_engine(|own| {
        let (source, target) = (Directory::default(), Directory::default());
        let store = open(source.path(), own);
        insert(&store, 0..3_000);
        store.checkpoint().expect("checkpoint");
        let is_over = AtomicBool::new(false);
        let (list, written) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut next = 3_000;
                while !is_over.load(Ordering::Relaxed) {
                    insert(&store, next..next + 10);
                    next += 10;
                    if next % 500 == 0 {
                        store.checkpoint().expect("checkpoint");
                        store.compact().expect("compacts");
                    }
                }
                next
            });
            let image = store.begin_image("a test", None).expect("begun");
            let list = ready(&image);
            let mut received = ReceivedImage::begin(target.path(), ImageList::clone(&list)).expect("begun");
            // The second half is received by another process.
            receive(&image, &mut received, 2);
            drop(received);
            let (mut received, damaged) = resumed(target.path());
            assert_eq!(damaged, 0);
            assert!(received.arrived_bytes() > 0);
            receive(&image, &mut received, usize::MAX);
            assert_eq!(received.verify(&mut || ()).expect("readable"), 0);
            received.intend_installation().expect("intended");
            is_over.store(true, Ordering::Relaxed);
            (list, writer.join().expect("no panic"))
        });
        install(target.path());
        assert!(!target.path().join("sync").exists() && !target.path().join("installing").exists());
        let copy = open(target.path(), own);
        let copied = count(&copy.snapshot());
        assert!((3_000..=written).contains(&copied), "{copied} of {written}");
        assert_eq!(copy.places().end.0, list.end.end);
        // It goes on as any store, and is found again.
        insert(&copy, copied..copied + 100);
        copy.close().expect("closes");
        drop(copy);
        assert_eq!(count(&open(target.path(), own).snapshot()), copied + 100);
        assert_eq!(count(&store.snapshot()), written);
    });
}

#[test]
fn damage_on_the_way_and_on_the_disk_is_found() {
    each_durable_engine(|own| {
        let (source, target) = (Directory::default(), Directory::default());
        let store = open(source.path(), own);
        insert(&store, 0..500);
        let image = store.begin_image("a test", None).expect("begun");
        let list = ready(&image);
        let mut received = ReceivedImage::begin(target.path(), ImageList::clone(&list)).expect("begun");
        let wanted = received.wanted().expect("all");
        let mut bytes = Vec::new();
        let checksum = image.read(&wanted.name, wanted.offset, &mut bytes).expect("read");
        bytes[7] ^= 1;
        let refused = received.put(&wanted, &bytes, checksum);
        assert!(matches!(refused, Err(StorageError::ImageDamaged { .. })), "{refused:?}");
        assert_eq!(received.wanted(), Some(wanted));
        receive(&image, &mut received, usize::MAX);
        drop(received);
        let largest = list.files.iter().max_by_key(|file| file.bytes).expect("files");
        let path = target.path().join("sync/files").join(&largest.name);
        let mut contents = std::fs::read(&path).expect("readable");
        contents[largest.bytes as usize / 2] ^= 0x20;
        std::fs::write(&path, contents).expect("written");
        let (mut received, damaged) = resumed(target.path());
        assert_eq!(damaged, 1);
        receive(&image, &mut received, usize::MAX);
        assert_eq!(received.verify(&mut || ()).expect("readable"), 0);
        received.intend_installation().expect("intended");
        install(target.path());
        assert_eq!(count(&open(target.path(), own).snapshot()), 500);
    });
}

#[test]
fn there_is_one_image_and_it_ends() {
    each_durable_engine(|own| {
        let source = Directory::default();
        let store = open(source.path(), own);
        insert(&store, 0..10);
        let image = store.begin_image("a", None).expect("begun");
        let list = ready(&image);
        assert_eq!(store.begin_image("a", Some(&list.id)).expect("known").id(), list.id);
        let other = store.begin_image("b", None).map(|image| image.id().to_owned());
        assert!(matches!(other, Err(StorageError::ImageInUse { .. })), "{other:?}");
        let outside = image.read("vote", 0, &mut Vec::new());
        assert!(matches!(outside, Err(StorageError::ImageGone { .. })), "{outside:?}");
        store.release_image(&list.id);
        assert!(matches!(image.read("manifest.bson", 0, &mut Vec::new()), Err(StorageError::ImageGone { .. })));
        assert!(matches!(store.image(&list.id), Err(StorageError::ImageGone { .. })));
        // A crash leaves the files of an image, and a start removes them.
        let left = ready(&store.begin_image("b", None).expect("begun"));
        let crashed = Directory::copy_of(source.path());
        assert!(crashed.path().join("image").join(&left.id).exists());
        let recovered = open(crashed.path(), own);
        assert!(!crashed.path().join("image").exists());
        assert_eq!(count(&recovered.snapshot()), 10);
    });
}

#[test]
fn an_engine_without_files_has_no_image() {
    for own in engines().into_iter().filter(|own| survival(own) == Survival::Volatile) {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        let refused = store.begin_image("a", None).map(|image| image.id().to_owned());
        assert!(matches!(refused, Err(StorageError::VolatileEngine { .. })), "{refused:?}");
    }
}

#[test]
fn an_installation_that_was_interrupted_goes_on() {
    each_durable_engine(|own| {
        let (source, target) = (Directory::default(), Directory::default());
        let store = open(source.path(), own);
        insert(&store, 0..500);
        let old = open(target.path(), own);
        insert(&old, 0..20);
        old.close().expect("closes");
        drop(old);
        std::fs::write(target.path().join("member"), b"stays").expect("written");
        let image = store.begin_image("a test", None).expect("begun");
        let mut received = ReceivedImage::begin(target.path(), ImageList::clone(&ready(&image))).expect("begun");
        receive(&image, &mut received, usize::MAX);
        received.intend_installation().expect("intended");
        // Each directory may be in its place already, or its old contents may be gone.
        for done in ["log", "trees", "extents", "mmap"] {
            let interrupted = Directory::copy_of(target.path());
            let _ = std::fs::remove_dir_all(interrupted.path().join(done));
            let gone = Directory::copy_of(interrupted.path());
            let _ = std::fs::rename(interrupted.path().join("sync/files").join(done), interrupted.path().join(done));
            for directory in [interrupted, gone] {
                install(directory.path());
                install(directory.path());
                let order = "installing";
                std::fs::copy(target.path().join(order), directory.path().join(order)).expect("copied");
                install(directory.path());
                assert!(!directory.path().join(order).exists());
                assert_eq!(count(&open(directory.path(), own).snapshot()), 500, "{done}");
                assert!(directory.path().join("member").exists());
            }
        }
    });
}
