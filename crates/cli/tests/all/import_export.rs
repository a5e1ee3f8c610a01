//! Documents go through text and come back: JSON, CSV, TSV and BSON, with good input and bad, and with kills between.

use crate::peer::Running;
use crate::tool::{self, archive, connect, documents, drop_database, fail, fixture, insert, spawn, succeed, text};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_client::Connection;
use bunko_testkit::patience::wait_until;
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// A file in a directory of its own.
fn file(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, contents).expect("written");
    path
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Imports a file into `shop.c`, which is empty before; returns the documents without `_id`, and what the tool said.
fn imported(running: &Running, contents: impl AsRef<[u8]>, arguments: &[&str]) -> (Vec<String>, Output) {
    let (folder, mut connection) = (folder(), connect(running.address()));
    drop_database(&mut connection, "shop");
    let path = file(folder.path(), "input", contents);
    let all = [&["--db=shop", "--collection=c", "--numInsertionWorkers=1", text(&path)], arguments].concat();
    let output = tool::run("import", running.address(), &all);
    (shown(&mut connection, "c"), output)
}

/// The documents of a collection of `shop` in the order of their `_id`s, without `_id`s that are ObjectIds.
fn shown(connection: &mut Connection, collection: &str) -> Vec<String> {
    let without_id = |document: &DocumentBuf| {
        let mut shown = DocumentBuf::new();
        for element in document.as_ref() {
            if element.name != "_id" || !matches!(element.value, ValueRef::ObjectId(_)) {
                shown.append(element.name, element.value);
            }
        }
        bunko_bson::extended_json::to_relaxed(ValueRef::Document(shown.as_ref()))
    };
    documents(connection, "shop", collection).iter().map(without_id).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs an export that must succeed; returns its standard output.
fn exported(address: SocketAddr, arguments: &[&str]) -> Vec<u8> {
    let output = tool::run("export", address, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    output.stdout
}

#[test]
fn json_and_tables_are_imported() {
    let running = Running::start();
    let (found, output) =
        imported(&running, "{\"a\": 1}\n{\"_id\": 7,\n \"d\": {\"$date\": \"2020-01-01T00:00:00Z\"}}", &[]);
    assert_eq!(found, [r#"{"_id":7,"d":{"$date":"2020-01-01T00:00:00Z"}}"#, r#"{"a":1}"#], "{}", said(&output));
    assert!(
        output.status.success() && said(&output).contains("2 document(s) imported successfully. 0 document(s) failed")
    );
    let (found, _) = imported(&running, "\u{feff} [ {\"a\": 1} , {\"a\": 2} ] ", &["--jsonArray"]);
    assert_eq!(found, [r#"{"a":1}"#, r#"{"a":2}"#]);
    let csv = "a.b,c\r\n1,\"x\ny\"\r\n,z\r\n";
    let (found, _) = imported(&running, csv, &["--type=csv", "--headerline", "--ignoreBlanks"]);
    assert_eq!(found, [r#"{"a":{"b":1},"c":"x\ny"}"#, r#"{"c":"z"}"#]);
    let types = ["--type=tsv", "--fields=n.decimal(),t.string()", "--columnsHaveTypes"];
    let (found, output) = imported(&running, "1.10\t7\n", &types);
    assert_eq!(found, [r#"{"n":{"$numberDecimal":"1.10"},"t":"7"}"#], "{}", said(&output));
    let (found, output) = imported(&running, "x\t7\n", &types);
    assert!(found.is_empty() && said(&output).contains("line 1, byte 0: column \"n\": \"x\" is not a decimal"));
    let (found, output) = imported(&running, "x\t7\n2\t8\n", &[&types[..], &["--parseGrace=skipRow"]].concat());
    assert_eq!(found, [r#"{"n":{"$numberDecimal":"2"},"t":"8"}"#]);
    assert!(output.status.success() && said(&output).contains("1 record(s) skipped"));
}

#[test]
fn the_file_names_the_collection_and_standard_input_needs_one() {
    let (running, folder) = (Running::start(), folder());
    let path = file(folder.path(), "orders.json", "{\"_id\": 1}");
    succeed("import", running.address(), &["--file", text(&path)]);
    assert_eq!(documents(&mut connect(running.address()), "test", "orders").len(), 1);
    assert!(fail("import", running.address(), &["--db=test"]).contains("--collection is needed"));
    let mut child = tool::command("import", running.address(), &["--db=shop", "--collection=piped"])
        .stdin(Stdio::from(fs::File::open(&path).expect("there")))
        .stderr(Stdio::null())
        .spawn()
        .expect("the tool runs");
    assert!(child.wait().expect("ends").success());
    assert_eq!(shown(&mut connect(running.address()), "piped"), ["{\"_id\":1}"]);
}

#[test]
fn modes_find_documents_by_their_fields() {
    let (running, folder) = (Running::start(), folder());
    let mut connection = connect(running.address());
    let mut import = |contents: &str, arguments: &[&str]| {
        let path = file(folder.path(), "c.json", contents);
        let said = succeed("import", running.address(), &[&["--db=shop", text(&path)], arguments].concat());
        (shown(&mut connection, "c"), said)
    };
    import(r#"{"_id":1,"k":1,"a":1} {"_id":2,"k":2,"a":2}"#, &[]);
    let (found, said) = import(r#"{"_id":1,"b":0} {"_id":3,"k":3}"#, &[]);
    assert_eq!(found, [r#"{"_id":1,"k":1,"a":1}"#, r#"{"_id":2,"k":2,"a":2}"#, r#"{"_id":3,"k":3}"#]);
    assert!(said.contains("line 1, byte 0: _id 1: E11000") && said.contains("1 document(s) failed"), "{said}");
    let (found, _) = import(r#"{"k":1,"b":1}"#, &["--mode=merge", "--upsertFields=k"]);
    assert_eq!(found[0], r#"{"_id":1,"k":1,"a":1,"b":1}"#);
    let (found, _) = import(r#"{"k":1,"c":1} {"x":1}"#, &["--upsertFields=k"]);
    assert_eq!((found[0].as_str(), found.len(), found[3].as_str()), (r#"{"_id":1,"k":1,"c":1}"#, 4, r#"{"x":1}"#));
    let (found, said) = import(r#"{"k":1} {"k":2} {"k":9} {"y":1}"#, &["--mode=delete", "--upsertFields=k"]);
    assert_eq!(found, [r#"{"_id":3,"k":3}"#, r#"{"x":1}"#]);
    assert!(said.contains("2 document(s) deleted") && said.contains("1 record(s) skipped"), "{said}");
    let (found, _) = import(r#"{"_id":5}"#, &["--drop"]);
    assert_eq!(found, [r#"{"_id":5}"#]);
}

#[test]
fn the_first_refusal_ends_an_ordered_import() {
    let running = Running::start();
    let input = r#"{"_id":1} {"_id":1} {"_id":2}"#;
    for flag in ["--stopOnError", "--maintainInsertionOrder"] {
        let (found, output) = imported(&running, input, &[flag]);
        assert_eq!((found, output.status.code()), (vec!["{\"_id\":1}".to_owned()], Some(1)), "{}", said(&output));
        assert!(said(&output).contains("1 document(s) imported") && said(&output).contains("E11000"));
    }
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let running = Running::start();
    let large = format!("{{\"_id\":1}}\n{{\"_id\":2,\"s\":\"{}\"}}", "x".repeat(20_000_000));
    let deep = format!("{{\"_id\":1}}\n{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    let mut bson = DocumentBuf::new().with("_id", 1_i32).into_bytes();
    let whole = bson.clone();
    bson.extend([20, 0, 0, 0, 2]);
    let cases: &[(&[u8], &[&str], &str, usize)] = &[
        (b"{\"_id\":1}\n{\"_id\":2,", &[], "line 2, byte 10: the input ends in the middle of the document", 1),
        (b"{\"_id\":1}\n{\"_id\":2,\"a\":\"b", &[], "a string is not closed", 1),
        (b"{\"_id\":1}\n\n{\"_id\":'2'}", &[], "line 3, byte 18: expected a value, found \"'2'}\"", 1),
        (b"{\"_id\":1}\n{\"_id\":\"\0\"}", &[], "line 2, byte 18: expected an escape for a control character", 1),
        (b"{\"_id\":1}\n{\"a\":\"\xff\"}", &[], "line 2, byte 16: the byte 0xff is not UTF-8", 1),
        (b"{\"_id\":1}\n{\"a\":1e400}", &[], "the number \"1e400\" is too large for a double", 1),
        (b"{\"_id\":1}\n{\"a\":{\"$numberInt\":\"2147483648\"}}", &[], "malformed $numberInt", 1),
        (b"{\"_id\":1},\n{\"_id\":2}", &[], "line 1, byte 9: expected a document", 1),
        (b"[{\"_id\":1}]", &[], "use --jsonArray", 0),
        (b"{\"_id\":1}", &["--jsonArray"], "leave --jsonArray out", 0),
        (b"[{\"_id\":1},", &["--jsonArray"], "found the end of the input", 1),
        (b"[{\"_id\":1} {\"_id\":2}]", &["--jsonArray"], "byte 11: expected ',' or ']'", 1),
        (b"\x1f\x8b\x08\0\0\0\0\0", &[], "compressed by gzip", 0),
        (b"\xff\xfe{\0}\0", &[], "UTF-16", 0),
        (&whole, &[], "looks like BSON", 0),
        (b"{\"_id\":1}", &["--type=bson"], "looks like JSON", 0),
        (&bson, &["--type=bson"], "byte 14: the input ends in the middle of this document of 20 bytes", 1),
        (b"_id\n1\n\"2", &["--type=csv", "--headerline"], "line 3, byte 6: the quote that opens here is not closed", 1),
        (b"_id,_id\n1,2", &["--type=csv", "--headerline"], "\"_id\" is there twice", 0),
        (b"", &["--type=csv", "--headerline"], "the header line: it is empty", 0),
        (
            b"_id.int32()\n1\n3000000000",
            &["--type=csv", "--headerline", "--columnsHaveTypes"],
            "line 3, byte 14: column \"_id\": \"3000000000\" is not an int32",
            1,
        ),
        (large.as_bytes(), &[], "line 2, byte 10: this document has 20000022 bytes", 1),
        (deep.as_bytes(), &[], "nests more than 200 levels", 1),
        (b"\x7fELF\x02\x01\x01\0\0\0", &[], "expected a document", 0),
    ];
    for (contents, arguments, words, count) in cases {
        let (found, output) = imported(&running, contents, arguments);
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains(words), "{words}: {told}");
        assert_eq!(found.len(), *count, "{words}: {told}");
        assert!(told.contains(&format!("{count} document(s) imported successfully")) || *count == 0, "{words}: {told}");
    }
    let (found, output) = imported(&running, "", &[]);
    assert!(found.is_empty() && output.status.success(), "{}", said(&output));
}

#[test]
fn all_types_come_back_equal() {
    let (running, folder) = (Running::start(), folder());
    let (address, mut connection) = (running.address(), connect(running.address()));
    let state = file(folder.path(), "state", "");
    let source = archive(&fixture("fixture.archive"));
    succeed("restore", address, &[&source, "--nsInclude=fixture.types", "--resumeFile", text(&state)]);
    let expected = documents(&mut connection, "fixture", "types");
    assert_eq!(expected.len(), 29);
    let forms: [(&[&str], &[&str]); 4] = [
        (&["--jsonFormat=canonical"], &[]),
        (&["--jsonFormat=canonical", "--jsonArray"], &["--jsonArray"]),
        (&["--jsonFormat=canonical", "--pretty"], &[]),
        (&["--type=bson"], &["--type=bson"]),
    ];
    for (form, back) in forms {
        let path = folder.path().join("out");
        let of_types = ["--db=fixture", "--collection=types", "--out", text(&path)];
        let said = succeed("export", address, &[&of_types, form].concat());
        assert!(said.contains("exported 29 record(s)"), "{said}");
        succeed("import", address, &[&["--db=copy", "--collection=types", "--drop", text(&path)], back].concat());
        assert!(documents(&mut connection, "copy", "types") == expected, "{form:?}");
    }
    // Relaxed text keeps the types of these values.
    let plain = DocumentBuf::new()
        .with("_id", 1_i32)
        .with("s", "a,\"b\"\n")
        .with("d", 1.5)
        .with("t", true)
        .with("l", 1_i64 << 40);
    insert(&mut connection, "shop", "plain", std::slice::from_ref(&plain));
    for (form, back) in [("json", &[][..]), ("csv", &["--headerline"]), ("tsv", &["--headerline"])] {
        let path = folder.path().join("plain");
        let fields = ["--fields=_id,s,d,t,l", "--db=shop", "--collection=plain", "--out", text(&path), "--type", form];
        succeed("export", address, &fields);
        succeed(
            "import",
            address,
            &[&["--db=copy", "--collection=plain", "--drop", text(&path), "--type", form], back].concat(),
        );
        let mut expected = plain.clone();
        if form != "json" {
            // Tables have no booleans of their own.
            expected = DocumentBuf::new()
                .with("_id", 1_i32)
                .with("s", "a,\"b\"\n")
                .with("d", 1.5)
                .with("t", "true")
                .with("l", 1_i64 << 40);
        }
        assert_eq!(documents(&mut connection, "copy", "plain"), [expected], "{form}");
    }
}

#[test]
fn an_export_chooses_and_orders() {
    let running = Running::start();
    let (address, mut connection) = (running.address(), connect(running.address()));
    let document = |n: i32| {
        let inner = DocumentBuf::new().with("b", n * 10);
        DocumentBuf::new()
            .with("_id", n)
            .with("a", &inner)
            .with("t", &[n, n + 1].into_iter().collect::<bunko_bson::ArrayBuf>())
    };
    insert(&mut connection, "shop", "c", &(0..10).map(document).collect::<Vec<_>>());
    let of = |arguments: &[&str]| {
        let bytes = exported(address, &[&["--db=shop", "--collection=c"], arguments].concat());
        String::from_utf8(bytes).expect("UTF-8")
    };
    let some = ["--query={\"_id\": {\"$gte\": 3}}", "--sort={\"_id\": -1}", "--skip=1", "--limit=2"];
    assert_eq!(
        of(&[&some[..], &["--fields=a"]].concat()),
        "{\"_id\":8,\"a\":{\"b\":80}}\n{\"_id\":7,\"a\":{\"b\":70}}\n"
    );
    let table = ["--type=csv", "--fields=t.1,a.b,a,missing"];
    assert_eq!(
        of(&[&some[..], &table].concat()),
        "t.1,a.b,a,missing\n9,80,\"{\"\"b\"\":80}\",\n8,70,\"{\"\"b\"\":70}\",\n"
    );
    assert_eq!(of(&["--limit=1", "--forceTableScan", "--type=tsv", "--fields=a.b", "--noHeaderLine"]), "0\n");
    assert_eq!(of(&["--query={\"_id\": 99}", "--jsonArray"]), "[]\n");
    assert!(
        fail("export", address, &["--db=shop", "--collection=none", "--assertExists"])
            .contains("shop.none does not exist")
    );
    assert_eq!(exported(address, &["--db=shop", "--collection=none"]), b"");
}

#[test]
fn a_failed_export_leaves_the_file_as_it_was() {
    let (running, folder) = (Running::start(), folder());
    let path = file(folder.path(), "out.json", "before");
    let arguments = ["--db=shop", "--collection=c", "--out", text(&path), "--query={\"$nonsense\": 1}"];
    assert!(fail("export", running.address(), &arguments).contains("$nonsense"));
    assert_eq!(fs::read(&path).expect("there"), b"before");
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1);
}

/// Documents without `_id`, whose `n`s are the numbers from 0 on.
fn numbered_lines(count: u32) -> String {
    let pad = "x".repeat(200);
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "{{\"n\":{n},\"pad\":\"{pad}\"}}").expect("text");
    }
    text
}

#[test]
fn a_killed_import_goes_on_without_doubling() {
    let (running, folder) = (Running::start(), folder());
    let count = 100_000_u32;
    let lines = numbered_lines(count);
    let array = format!("[{}]", lines.trim_end().replace('\n', ",\n"));
    for (name, contents, flag) in [("lines", &lines, "--type=json"), ("array", &array, "--jsonArray")] {
        let path = file(folder.path(), name, contents);
        let state = folder.path().join(format!("{name}.state"));
        let arguments = ["--db=shop", text(&path), "--resume", text(&state), flag];
        for round in 1..=3 {
            let mut child = spawn("import", running.address(), &arguments);
            // Each run is killed in the middle: some parts are acknowledged, and others are on their way.
            let parts = || fs::read_to_string(&state).map_or(0, |state| state.matches("\"done\"").count());
            wait_until("parts of the input are acknowledged", || {
                parts() >= 2 * round || child.try_wait().is_ok_and(|ended| ended.is_some())
            });
            child.kill().expect("killed");
            assert!(!child.wait().expect("ended").success(), "the import ended before it was killed");
        }
        let said = succeed("import", running.address(), &arguments);
        assert!(said.contains("were imported by an earlier run"), "{said}");
        assert!(said.contains(&format!("{count} document(s) imported successfully. 0 document(s) failed")), "{said}");
        let found = documents(&mut connect(running.address()), "shop", name);
        let mut numbers: Vec<i64> =
            found.iter().filter_map(|found| number::as_i64_exact(found.as_ref().get("n")?)).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..i64::from(count)), "{} documents", numbers.len());
        let again = succeed("import", running.address(), &arguments);
        assert!(again.contains("was finished by an earlier run"), "{again}");
        assert_eq!(documents(&mut connect(running.address()), "shop", name).len(), found.len());
        fs::write(&path, format!("{contents} ")).expect("written");
        assert!(fail("import", running.address(), &arguments).contains("the input has changed"));
    }
}

#[test]
fn documents_that_were_sent_again_are_known() {
    let (running, folder) = (Running::start(), folder());
    let path = file(folder.path(), "c", numbered_lines(1_000));
    let state = folder.path().join("state");
    let arguments = ["--db=shop", text(&path), "--resume", text(&state)];
    succeed("import", running.address(), &arguments);
    // A kill between the server's reply and the state's line leaves the first two lines.
    let text = fs::read_to_string(&state).expect("there");
    let first: String = text.split_inclusive('\n').take(2).collect();
    for flag in [&[][..], &["--maintainInsertionOrder"]] {
        fs::write(&state, &first).expect("written");
        let said = succeed("import", running.address(), &[&arguments, flag].concat());
        assert!(said.contains("1000 document(s) were sent again"), "{said}");
        assert!(said.contains("1000 document(s) imported successfully. 0 document(s) failed"), "{said}");
        assert_eq!(documents(&mut connect(running.address()), "shop", "c").len(), 1_000);
    }
}

#[test]
fn parquet_has_every_type_and_bounded_columns() {
    let (running, folder) = (Running::start(), folder());
    let (address, mut connection) = (running.address(), connect(running.address()));
    let path = folder.path().join("out.parquet");
    let flags = ["--type=parquet", "--db=shop", "--collection=c", "--out", text(&path)];
    let refusal = fail("export", address, &flags);
    assert!(refusal.contains("there are no documents") && !path.exists(), "{refusal}");
    insert(
        &mut connection,
        "shop",
        "c",
        &[
            DocumentBuf::new()
                .with("_id", 1_i32)
                .with("mixed", 1_i32)
                .with("inner", &DocumentBuf::new().with("a", 1.5)),
            DocumentBuf::new().with("_id", 1_i64 << 40).with("mixed", "text"),
        ],
    );
    assert!(succeed("export", address, &flags).contains("exported 2 record(s)"));
    let bytes = fs::read(&path).expect("written");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let holds = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    // An int64 for both numbers, and the texts of values that have no column of their own.
    for part in [&1_i64.to_le_bytes()[..], b"\"text\"", br#"{"a":1.5}"#] {
        assert!(holds(&bytes, part), "{part:?}");
    }
    let of_inner = exported(address, &["--type=parquet", "--db=shop", "--collection=c", "--fields=inner.a"]);
    assert!(holds(&of_inner, b"inner.a") && holds(&of_inner, &1.5_f64.to_le_bytes()) && !holds(&of_inner, b"mixed"));
    let many = (0..1001).fold(DocumentBuf::new(), |document, number| document.with(&format!("f{number}"), number));
    insert(&mut connection, "shop", "many", &[many]);
    let refusal = fail("export", address, &["--type=parquet", "--db=shop", "--collection=many"]);
    assert!(refusal.contains("more than 1000 different fields"), "{refusal}");
    let state = file(folder.path(), "state", "");
    let source = archive(&fixture("fixture.archive"));
    succeed("restore", address, &[&source, "--nsInclude=fixture.types", "--resumeFile", text(&state)]);
    let of_types = ["--type=parquet", "--db=fixture", "--collection=types", "--out", text(&path)];
    assert!(succeed("export", address, &of_types).contains("exported 29 record(s)"));
}
