//! Compressed streams: this crate's read by itself and by other programs, other programs' read by this crate, and
//! damaged ones.

use bunko_archive::compression::{self, Compression, Writer};
use bunko_archive::index::{self, NO_TAG};
use bunko_testkit::random::Random;
use proptest::prelude::*;
use std::fs::{self, File};
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};

const ALL: [Compression; 4] = [Compression::None, Compression::Gzip, Compression::Zstd { level: 1 }, Compression::Lz4];

/// First bytes of frames with hostile contents.
const MAGICS: [&[u8]; 6] = [
    &[0x1f, 0x8b, 8, 0],
    &[0x1f, 0x8b, 8, 4],
    &[0x28, 0xb5, 0x2f, 0xfd],
    &[0x04, 0x22, 0x4d, 0x18],
    &[0x04, 0x22, 0x4d, 0x18, 0x68],
    &[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0],
];

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("not zero")
}

fn compress(compression: Compression, units: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), compression, threads(1 + units.len() % 3));
    let tag = writer.tag("d", "c");
    for unit in units {
        let mut buffer = writer.buffer();
        buffer.extend_from_slice(unit);
        writer.write_unit(buffer, tag).expect("written");
    }
    writer.finish().expect("finished")
}

fn decompress(stream: Vec<u8>) -> io::Result<Vec<u8>> {
    let input_bytes = stream.len() as u64;
    let mut reader = compression::open(Box::new(Cursor::new(stream)), threads(2))?;
    let mut raw = Vec::new();
    reader.read_to_end(&mut raw)?;
    assert_eq!((reader.raw_bytes_read(), reader.compressed_bytes_read()), (raw.len() as u64, input_bytes));
    Ok(raw)
}

/// Text that compresses, and does not repeat.
fn text(bytes: usize, seed: usize) -> Vec<u8> {
    let mut text: Vec<u8> =
        (seed..).flat_map(|number| format!("line {} of {seed}\n", number * number).into_bytes()).take(bytes).collect();
    // The first eighth does not compress at all.
    let mut random = Random(seed as u64);
    for byte in text.iter_mut().take(bytes / 8) {
        *byte = random.number() as u8;
    }
    text
}

/// A program's output for an input; `None`, and a message, if the program is not installed.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let spawned = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        eprintln!("SKIPPED: {program} is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("ended")
    });
    assert!(output.status.success(), "{program} {arguments:?}: {:?}", output.status);
    Some(output.stdout)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn units_come_back(
        lengths in proptest::collection::vec(prop_oneof![0_usize..200, 0_usize..300_000], 0..12),
        compression in proptest::sample::select(&ALL[..]),
    ) {
        let units: Vec<_> = lengths.iter().enumerate().map(|(seed, &length)| text(length, seed)).collect();
        prop_assert_eq!(decompress(compress(compression, &units)).expect("ours"), units.concat());
    }

    #[test]
    fn any_bytes_behind_a_magic_are_refused_or_read(
        tail in proptest::collection::vec(any::<u8>(), 0..300),
        magic in proptest::sample::select(&MAGICS[..]),
    ) {
        // Any result is accepted, but no panic and no excessive memory.
        let _ = decompress([magic, &tail[..]].concat());
    }
}

#[test]
fn long_units_come_back() {
    let units = [text(1 << 20, 1).repeat(32), text(5, 2), text(1 << 20, 3).repeat(17)];
    for compression in ALL {
        let mut writer = Writer::new(Vec::new(), compression, threads(3));
        for unit in &units {
            writer.write_unit(unit.clone(), NO_TAG).expect("written");
        }
        writer.flush().expect("flushed");
        assert_eq!(writer.written().units, 3);
        assert_eq!(writer.written().out_bytes, writer.output().len() as u64);
        assert!(decompress(writer.finish().expect("finished")).expect("ours") == units.concat());
    }
    let mut writer = Writer::new(Vec::new(), Compression::None, threads(1));
    let error = writer.write_unit(vec![0; compression::MAX_UNIT_BYTES + 1], NO_TAG).expect_err("too long");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn other_programs_read_ours() {
    let units: Vec<_> = (0..5).map(|seed| text(300_000, seed)).collect();
    let raw = units.concat();
    let python = "import sys,gzip; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let zlib = "import sys,zlib\nrest=sys.stdin.buffer.read()\nwhile rest:\n d=zlib.decompressobj(31); \
                sys.stdout.buffer.write(d.decompress(rest)); assert d.eof; rest=d.unused_data";
    for (compression, program, arguments) in [
        (Compression::Gzip, "gzip", &["-dc"][..]),
        (Compression::Gzip, "python3", &["-c", python]),
        (Compression::Gzip, "python3", &["-c", zlib]),
        (Compression::Zstd { level: 3 }, "zstd", &["-dc"]),
        (Compression::Lz4, "lz4", &["-dc"]),
    ] {
        let stream = compress(compression, &units);
        if let Some(output) = run(program, arguments, &stream) {
            assert!(output == raw, "{program} {arguments:?} reads something else");
        }
        if program != "python3" {
            run(program, &["-t"], &stream);
        }
    }
    // An index of several members works like an index of one.
    let many: Vec<_> = (0..6_000).map(|seed| vec![seed as u8; 1]).collect();
    let stream = compress(Compression::Gzip, &many);
    assert_eq!(decompress(stream.clone()).expect("ours"), many.concat());
    if let Some(output) = run("gzip", &["-dc"], &stream) {
        assert!(output == many.concat());
    }
}

#[test]
fn output_of_other_programs_is_read() {
    let raw = text(1_000_000, 7);
    for (program, arguments) in [
        ("gzip", &["-c"][..]),
        ("zstd", &["-c"]),
        ("zstd", &["-c", "--no-check", "-19", "--long=27"]),
        ("lz4", &["-c"]),
        ("lz4", &["-c", "-BD", "-B4"]),
        ("lz4", &["-c", "--content-size", "-BX"]),
    ] {
        let Some(stream) = run(program, arguments, &raw) else { continue };
        assert!(decompress(stream.clone()).expect("whole") == raw, "{program} {arguments:?}");
        // A stream may mix frames: the program's, ours in lz4, the program's again.
        let ours = compress(Compression::Lz4, std::slice::from_ref(&raw));
        let mixed = [&stream[..], &ours, &stream].concat();
        assert!(decompress(mixed).expect("whole") == [&raw[..], &raw, &raw].concat(), "{program} {arguments:?}");
        for end in [5, 100, stream.len() / 2, stream.len() - 1] {
            let error = decompress(stream[..end].to_vec()).expect_err("truncated").to_string();
            assert!(error.contains("frame at its offset 0"), "{program} {arguments:?}: {error}");
        }
    }
}

#[test]
fn damage_is_found_and_named() {
    let units = [text(300, 1), text(150, 2)];
    let raw = units.concat();
    for compression in &ALL[1..] {
        let stream = compress(*compression, &units);
        let mut frames = Writer::new(Vec::new(), *compression, threads(1));
        for unit in &units {
            frames.write_unit(unit.clone(), NO_TAG).expect("written");
        }
        frames.flush().expect("flushed");
        let (second, end) = (frames.units()[1].out_offset as usize, frames.written().out_bytes as usize);
        for at in 0..stream.len() {
            let mut damaged = stream.clone();
            damaged[at] ^= 1 << (at % 8);
            // Damage in the first four bytes can make it a stream that counts as uncompressed, which the archive's
            // magic number refuses.
            if at < 4 && Compression::detect(&damaged) == Compression::None {
                continue;
            }
            match decompress(damaged) {
                Ok(read) => assert!(read == raw, "{compression:?}: byte {at} of {} is not noticed", stream.len()),
                Err(error) if at < end => {
                    let offset = if at < second { 0 } else { second };
                    let message = error.to_string();
                    assert!(
                        message.contains(&format!("at its offset {offset}:")),
                        "{compression:?}, byte {at}: {message}"
                    );
                }
                Err(_) => {}
            }
        }
        for length in (5..end).filter(|&length| length != second) {
            let error = decompress(stream[..length].to_vec()).expect_err("truncated").to_string();
            let offset = if length < second { 0 } else { second };
            assert!(error.contains(&format!("at its offset {offset}:")), "{compression:?}, {length}: {error}");
        }
        let error = decompress([&stream[..], b"junk"].concat()).expect_err("junk").to_string();
        assert!(error.contains("no frame begins here"), "{error}");
    }
}

#[test]
fn an_error_stays_an_error() {
    let stream = compress(Compression::Lz4, &[text(1000, 1)]);
    let mut reader = compression::open(Box::new(Cursor::new(stream[..500].to_vec())), threads(1)).expect("opened");
    assert_eq!(reader.compression(), Compression::Lz4);
    for _ in 0..3 {
        while let Ok(available) = reader.fill_buf() {
            let length = available.len();
            assert_ne!(length, 0, "damage is not an end");
            reader.consume(length);
        }
    }
}

#[test]
fn bombs_are_not_believed() {
    let raw = vec![0_u8; 4 << 20];
    let honest = compress(Compression::Zstd { level: 1 }, std::slice::from_ref(&raw));
    let lying = |range: std::ops::Range<usize>, number: &[u8], from: &[u8]| {
        let mut stream = from.to_vec();
        stream[range].copy_from_slice(number);
        stream
    };
    // zstd: a content size of four bytes follows the frame's descriptor; gzip: the lengths are in the extra field.
    let descriptor = honest[4];
    assert_eq!(descriptor >> 6, 2, "four bytes of content size");
    for bytes in [0_u32, 100, 33 << 20, u32::MAX] {
        decompress(lying(5..9, &bytes.to_le_bytes(), &honest)).expect_err("the size is not the content's");
    }
    let gzip = compress(Compression::Gzip, &[raw]);
    for bytes in [0_u32, 100, 31 << 20] {
        decompress(lying(20..24, &bytes.to_le_bytes(), &gzip)).expect_err("the size is not the content's");
    }
    // A length that is too large is ignored, and the member is decoded piece by piece, like members of other programs.
    assert_eq!(decompress(lying(20..24, &u32::MAX.to_le_bytes(), &gzip)).expect("a member").len(), 4 << 20);
}

#[test]
fn one_namespace_is_read_without_the_rest() {
    let directory = tempfile::tempdir().expect("directory");
    for compression in ALL {
        let path = directory.path().join(format!("archive{}", compression.suffix()));
        let file = File::create(&path).expect("created");
        let mut writer = Writer::new(file, compression, threads(2));
        let tags = [writer.tag("d", "a"), writer.tag("d", "b"), NO_TAG];
        let unit = |number: usize| text(1000 + number, number);
        for number in 0..30 {
            writer.write_unit(unit(number), tags[number % 3]).expect("written");
        }
        writer.flush().expect("flushed");
        let units = writer.units().to_vec();
        let written = writer.written();
        drop(writer);

        // Another writer continues where the first was killed in the middle of a unit.
        let mut file = File::options().write(true).open(&path).expect("there");
        file.set_len(written.out_bytes).expect("cut");
        file.seek(SeekFrom::End(0)).expect("end");
        let mut writer = Writer::resume(file, compression, threads(2), units);
        assert_eq!((writer.tag("d", "a"), writer.tag("d", "b")), (0, 1));
        assert_eq!(writer.written(), written);
        writer.write_unit(unit(30), 0).expect("written");
        writer.finish().expect("finished");

        let all = fs::read(&path).expect("there");
        assert_eq!(decompress(all.clone()).expect("ours"), (0..31).flat_map(unit).collect::<Vec<_>>());
        let file = File::open(&path).expect("there");
        let index = index::read(&file).expect("whole");
        if compression == Compression::None {
            assert_eq!(index, None);
            continue;
        }
        let index = index.expect("there");
        assert_eq!((index.units.len(), index.tags.len()), (31, 2));
        let selection = index.select(file, |_, collection| collection == "a");
        let bytes = selection.remaining_bytes();
        assert!(bytes < all.len() as u64 * 3 / 4);
        let mut reader = compression::open(Box::new(selection), threads(2)).expect("opened");
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("whole");
        assert_eq!(read, (0..31).filter(|number| number % 3 != 1).flat_map(unit).collect::<Vec<_>>());
        assert_eq!(reader.compressed_bytes_read(), bytes);
        if compression.suffix() == ".zst" {
            seek_table_leads_to_every_frame(&all, &index);
        }
        damaged_indexes_are_refused(&path, &all);
    }
}

/// Checks that a seek table of zstd's format leads to every frame.
fn seek_table_leads_to_every_frame(all: &[u8], index: &index::Index) {
    let number = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four bytes")) as usize;
    let entries = number(all.len() - 9);
    assert_eq!((entries, number(all.len() - 4)), (index.units.len() + 1, 0x8f92_eab1));
    let table = all.len() - 9 - 8 * entries;
    assert_eq!((number(table - 8), number(table - 4)), (0x184d_2a5e, 8 * entries + 9));
    let mut offset = 0;
    for (entry, unit) in index.units.iter().enumerate() {
        assert_eq!(offset as u64, unit.out_offset);
        assert_eq!(number(table + 8 * entry + 4), unit.raw_bytes as usize);
        offset += number(table + 8 * entry);
    }
    assert_eq!(offset + number(table + 8 * (entries - 1)), table - 8);
}

fn damaged_indexes_are_refused(path: &Path, all: &[u8]) {
    let whole = index::read(&File::open(path).expect("there")).expect("whole");
    let tail = all.len().saturating_sub(700);
    for at in tail..all.len() {
        let mut damaged = all.to_vec();
        damaged[at] ^= 0x10;
        fs::write(path, &damaged).expect("written");
        if let Ok(Some(index)) = index::read(&File::open(path).expect("there")) {
            assert_eq!(Some(index), whole, "byte {at} of {}", all.len());
        }
        fs::write(path, &all[..at]).expect("written");
        let _ = index::read(&File::open(path).expect("there"));
    }
}
