use super::*;

fn namespace(name: &str, documents: u64, expected: u64) -> NamespaceSnapshot {
    NamespaceSnapshot {
        name: name.into(),
        documents,
        bytes: documents * 1000,
        documents_expected: expected,
        bytes_expected: expected * 1000,
        ..NamespaceSnapshot::default()
    }
}

fn run(seconds: u64, namespaces: Vec<NamespaceSnapshot>, server_ms: u64, write_ms: u64) -> Snapshot {
    let mut snapshot = Snapshot { elapsed: Duration::from_secs(seconds), namespaces, ..Snapshot::default() };
    snapshot.spent[Activity::Server as usize] = Duration::from_millis(server_ms);
    snapshot.spent[Activity::WriteTarget as usize] = Duration::from_millis(write_ms);
    snapshot
}

#[test]
fn lines_show_what_is_being_worked_on_and_the_total() {
    let before = run(1, vec![namespace("shop.orders", 100_000, 1_000_000)], 500, 900);
    let done = NamespaceSnapshot { is_finished: true, ..namespace("shop.done", 50_000, 60_000) };
    let waiting = namespace("shop.waiting", 0, 950_000);
    let now = run(3, vec![namespace("shop.orders", 450_000, 1_000_000), done, waiting], 2000, 1100);
    let expected = "\
shop.orders   45.0 %        450,000 documents   450.0 MB
total         25.0 %        500,000 documents   500.0 MB  200.0 MB/s  200,000 documents/s  7.5 s left  limited by server (88 %)
";
    assert_eq!(lines(&before, &now), expected);
}

#[test]
fn unknown_totals_are_not_claimed() {
    let unknown = NamespaceSnapshot { bytes_expected: 0, ..namespace("a.b", 10, 0) };
    let expected = "\
a.b          ?             10 documents    10.0 kB
total        ?             10 documents    10.0 kB  0.0 MB/s  10 documents/s
";
    assert_eq!(lines(&Snapshot::default(), &run(1, vec![unknown], 0, 0)), expected);
}

#[test]
fn an_estimate_that_falls_short_never_says_done() {
    let namespace = namespace("a.b", 300, 100);
    assert_eq!(namespace.fraction(), Some(0.999));
    assert_eq!(run(1, vec![namespace], 0, 0).fraction(), Some(0.999));
}

#[test]
fn the_source_is_the_measure_where_its_length_is_known() {
    let mut before = run(0, vec![namespace("a.b", 0, 0)], 0, 0);
    before.source_bytes_expected = 4000;
    let mut now = run(2, vec![namespace("a.b", 7, 0)], 0, 0);
    (now.source_bytes, now.source_bytes_expected) = (1000, 4000);
    assert_eq!(now.fraction(), Some(0.25));
    assert_eq!(now.remaining_time(&before), Some(Duration::from_secs(6)));
}

#[test]
fn the_end_report_says_where_the_time_went() {
    let end = run(75, vec![namespace("a.b", 1_234_567, 0)], 3000, 1000);
    let expected = "\
1,234,567 documents, 1.2 GB in 1 min 15 s (16.5 MB/s, 16,460 documents/s)
time of all threads: server 75 %, writing the target 25 %
the limit was: server
";
    assert_eq!(end_report(&end), expected);
}

#[test]
fn json_lines_are_one_object_each() {
    let now = run(2, vec![namespace("a.b", 10, 20)], 10, 0);
    let line = json_line(&Snapshot::default(), &now);
    let expected = concat!(
        r#"{"event":"progress","elapsedSeconds":2.0,"documents":10,"bytes":10000,"failures":0,"fraction":0.5,"#,
        r#""remainingSeconds":2.0,"bytesPerSecond":5000,"documentsPerSecond":5,"bottleneck":"server","#,
        r#""namespaces":[{"namespace":"a.b","documents":10,"bytes":10000,"failures":0,"fraction":0.5}]}"#,
        "\n"
    );
    assert_eq!(line, expected);
    let end: Value = serde_json::from_str(&end_report_json(&now)).expect("JSON");
    assert_eq!(
        (&end["event"], &end["limit"], &end["shareOfTime"]["server"]),
        (&json!("end"), &json!("server"), &json!(1.0))
    );
}

#[test]
fn work_of_an_earlier_run_counts_but_not_for_the_pace() {
    let resumed = |documents| NamespaceSnapshot {
        documents_before: 600,
        bytes_before: 600_000,
        ..namespace("a.b", documents, 1000)
    };
    let now = run(2, vec![resumed(800)], 10, 0);
    assert_eq!(now.fraction(), Some(0.8));
    assert_eq!(now.remaining_time(&Snapshot::default()), Some(Duration::from_secs(2)));
    let report = end_report(&now);
    assert!(
        report.starts_with(
            "800 documents, 800.0 kB in 2.0 s (0.1 MB/s, 100 documents/s)\n600 of them by an earlier run\n"
        ),
        "{report}"
    );
}

#[test]
fn notes_are_lines_of_either_kind() {
    assert_eq!(note_json("a \"b\""), "{\"event\":\"note\",\"text\":\"a \\\"b\\\"\"}\n");
}
