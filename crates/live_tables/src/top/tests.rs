use super::*;
use bunko_testkit::shell::parse_document;

fn read_top(text: &str) -> Usages {
    usages(parse_document(text).expect(text).as_ref())
}

fn collection(name: &str, total: i64, read: i64, write: i64) -> String {
    let work = |name: &str, micros: i64| format!("{name}: {{time: NumberLong({micros}), count: {}}}", micros / 500);
    format!("'{name}': {{{}, {}, {}}}", work("total", total), work("readLock", read), work("writeLock", write))
}

fn reply(collections: &[String]) -> Usages {
    read_top(&format!("{{totals: {{note: 'all times in microseconds', {}}}, ok: 1}}", collections.join(", ")))
}

#[test]
fn a_table_has_the_busiest_collections_first() {
    let before = reply(&[collection("shop.a", 1_000, 500, 500), collection("shop.gone", 9, 9, 0)]);
    let now = reply(&[collection("shop.a", 3_999, 500, 3_499), collection("shop.b", 20_000, 20_000, 0)]);
    let used = difference(&before, &now);
    let expected = [
        "    ns    total     read    write    2026-01-31T00:00:00Z",
        "shop.b     20ms     20ms      0ms",
        "shop.a      2ms      0ms      2ms",
        "\n",
    ]
    .join("\n");
    assert_eq!(table(&used, "2026-01-31T00:00:00Z", Format::Text), expected);
    let line = table(&used, "2026-01-31T00:00:00Z", Format::Json);
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["time"], "2026-01-31T00:00:00Z");
    assert_eq!(line["totals"]["shop.a"]["write"], json!({ "time": 2, "count": 5 }));
    assert_eq!(line["totals"]["shop.b"]["total"], json!({ "time": 20, "count": 40 }));
    assert_eq!(line["totals"].as_object().map(Map::len), Some(2));
}

#[test]
fn ten_collections_are_shown_and_a_new_start_counts_from_zero() {
    let names: Vec<_> = (0..12).map(|number| collection(&format!("d.c{number:02}"), 0, 0, 0)).collect();
    let used = difference(&Usages::new(), &reply(&names));
    assert_eq!(table(&used, "now", Format::Text).lines().count(), 12, "headers, ten rows, an empty line");
    let anew = difference(&reply(&[collection("d.c", 9_000, 0, 0)]), &reply(&[collection("d.c", 2_000, 0, 0)]));
    assert_eq!(anew["d.c"].total, Work { micros: 2_000, operations: 4 });
}
