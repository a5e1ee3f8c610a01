//! The latencies of log syncs in `serverStatus`.

use crate::server::Server;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};

fn document<'d>(document: DocumentRef<'d>, name: &str) -> DocumentRef<'d> {
    document.get(name).and_then(ValueRef::as_document).expect("a document")
}

fn integer(document: DocumentRef<'_>, name: &str) -> i64 {
    document.get(name).and_then(number::as_i64_exact).expect("a number")
}

#[test]
fn each_sync_is_in_the_histogram() {
    let mut server = Server::start(&ENGINES[0], &EngineOptions::default());
    let insert = bunko_testkit::shell::parse_document("{insert: 't', documents: [{_id: 1}]}").expect("a document");
    server.run(1, "test", insert.as_ref());
    server.run(1, "admin", DocumentBuf::new().with("fsync", 1).as_ref());
    let status = server.run(1, "admin", DocumentBuf::new().with("serverStatus", 1).as_ref());
    let log = document(document(status.as_ref(), "bunko"), "log");
    assert_eq!(integer(log, "syncedLsn"), integer(log, "nextLsn"));
    let latencies = document(log, "syncLatencies");
    let histogram = document(latencies, "histogram");
    let (mut count, mut least_micros) = (0, 0);
    for bucket in histogram {
        let micros: i64 = bucket.name.parse().expect("microseconds");
        count += integer(histogram, bucket.name);
        least_micros += integer(histogram, bucket.name) * micros;
    }
    assert!(count >= 1);
    assert_eq!(integer(latencies, "ops"), count);
    assert!((least_micros..=2 * least_micros + count).contains(&integer(latencies, "latency")), "{latencies:?}");
    assert!(integer(latencies, "longestMicros") <= integer(latencies, "latency"));
}

/// The path of an array inside a value, if there is one.
fn array_in(place: &str, value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Array(_) => Some(place.to_owned()),
        ValueRef::Document(inner) => {
            inner.iter().find_map(|field| array_in(&format!("{place}.{}", field.name), field.value))
        }
        _ => None,
    }
}

/// Exporters name a metric by the path to its value, which leaves out positions in arrays.
#[test]
fn server_status_has_no_arrays_that_mongod_has_not() {
    for engine in ENGINES {
        let mut server = Server::start(engine, &EngineOptions::default());
        let status = server.run(1, "admin", DocumentBuf::new().with("serverStatus", 1).as_ref());
        assert_eq!(array_in("", ValueRef::Document(status.as_ref())), None);
    }
}
