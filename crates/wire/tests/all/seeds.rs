//! The fuzzer's seeds: one file for each sample. After a change of the samples, `REWRITE=1` rewrites them.

use crate::frames;
use bunko_bson::DocumentRef;
use bunko_wire::{Codec, MAX_FRAME_BYTES};
use std::path::Path;

#[test]
fn seeds_are_the_samples() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let document = frames::document();
    if std::env::var_os("REWRITE").is_some() {
        std::fs::create_dir_all(seeds.join("frame")).expect("writable");
        std::fs::create_dir_all(seeds.join("bson")).expect("writable");
        for (name, frame) in frames::samples() {
            std::fs::write(seeds.join("frame").join(name), frame).expect("writable");
        }
        std::fs::write(seeds.join("bson/document"), document.as_ref().as_bytes()).expect("writable");
        std::fs::write(seeds.join("bson/empty"), DocumentRef::EMPTY.as_bytes()).expect("writable");
    }
    for (name, _) in frames::samples() {
        // The seed is read, not compared: another version of a compressor may write other bytes.
        let seed = std::fs::read(seeds.join("frame").join(name)).expect(name);
        let values = frames::everything::read_frames(&mut Codec::new(), &seed, MAX_FRAME_BYTES);
        assert!(values.is_ok_and(|values| values > 0), "{name}");
    }
    let seed = std::fs::read(seeds.join("bson/document")).expect("a seed");
    assert_eq!(seed, document.as_ref().as_bytes());
}
