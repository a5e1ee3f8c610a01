//! Flags of dump, restore, import and export that would have no effect are refused, before a server is contacted or a
//! file is created.

use crate::peer::{Running, binary};
use crate::tool::{self, Dumped, archive, connect, fixture, insert, succeed, text, write_archive};
use bunko_bson::DocumentBuf;
use std::path::Path;
use std::process::{Command, Output};

/// Exit statuses: clap's, and the tools' own.
const USAGE: i32 = 2;
const FAILED: i32 = 1;

/// Runs a tool in an empty directory, which must stay empty.
fn output(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(binary()).args(arguments).current_dir(directory.path()).output().expect("the tool runs");
    let left = std::fs::read_dir(directory.path()).expect("there").count();
    assert_eq!(left, 0, "{arguments:?} left files behind: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The tool must refuse these arguments with that status, and name both words.
fn refused(arguments: &[&str], status: i32, words: [&str; 2]) {
    let output = output(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
}

#[test]
fn a_dump_refuses_what_it_would_ignore() {
    let cases: &[(&[&str], i32, [&str; 2])] = &[
        (&["--dbpath=d", "--readPreference=secondary"], USAGE, ["--dbpath", "--readPreference"]),
        (&["--dbpath=d", "--oplog"], USAGE, ["--dbpath", "--oplog"]),
        (&["--dbpath=d", "--host=h"], USAGE, ["--dbpath", "--host"]),
        (&["--dbpath=d", "--uri=mongodb://h"], USAGE, ["--dbpath", "--uri"]),
        (&["--dbpath=d", "--password=p"], USAGE, ["--dbpath", "--password"]),
        (&["--dbpath=d", "--authenticationDatabase=a"], USAGE, ["--dbpath", "--authenticationDatabase"]),
        (&["--dbpath=d", "--authenticationMechanism=PLAIN"], USAGE, ["--dbpath", "--authenticationMechanism"]),
        (&["--storage-engine=mmap"], USAGE, ["required", "--dbpath"]),
        (&["--storage-engine=mmap", "--uri=mongodb://h"], USAGE, ["--storage-engine", "--uri"]),
        (&["--storage-engine=mmap", "--host=h"], USAGE, ["--storage-engine", "--host"]),
        (&["--uri=mongodb://h", "--password=p"], USAGE, ["--uri", "--password"]),
        (&["--uri=mongodb://h", "--authenticationDatabase=a"], USAGE, ["--uri", "--authenticationDatabase"]),
        (&["--authenticationDatabase=a"], USAGE, ["required", "--username"]),
        (&["--dbpath=d", "--tls"], USAGE, ["--dbpath", "--tls"]),
        (&["--uri=mongodb://h", "--tls"], USAGE, ["--uri", "--tls"]),
        (&["--tlsCAFile=f"], USAGE, ["required", "--tls"]),
        (&["--tls", "--sslCRLFile=f"], USAGE, ["unexpected", "--sslCRLFile"]),
        (&["--tls", "--tlsCertificateKeyFilePassword=f"], USAGE, ["required", "--tlsCertificateKeyFile <FILE>"]),
        (&["--quiet", "--log-format=json"], USAGE, ["--quiet", "--log-format"]),
        (&["--gzip", "--zstd"], USAGE, ["--gzip", "--zstd"]),
        (&["--out=o", "--archive=a"], USAGE, ["--out", "--archive"]),
        (&["--db=a", "--collection=b", "--query={}", "--queryFile=f"], USAGE, ["--query", "--queryFile"]),
        // There is no server: these errors are found before one is needed.
        (&["--host=h:1", "--port=2"], FAILED, ["--port 2", "--host h:1"]),
        (&["--uri=mongodb://h/a", "--db=b"], FAILED, ["--db b", "'a'"]),
        (&["--dbpath=missing"], FAILED, ["--dbpath missing", "no such directory"]),
        (&["--collection=b"], FAILED, ["--collection", "--db"]),
        (&["--excludeCollection=b"], FAILED, ["--excludeCollection", "--db"]),
        (&["--excludeCollectionsWithPrefix=b"], FAILED, ["--excludeCollectionsWithPrefix", "--db"]),
        (&["--db=a", "--collection=b", "--excludeCollection=c"], FAILED, ["--collection", "--excludeCollection"]),
        (&["--dumpDbUsersAndRoles"], FAILED, ["--dumpDbUsersAndRoles", "--db"]),
        (&["--db=a", "--oplog"], FAILED, ["--db", "--oplog"]),
        (&["--archive", "--resume"], FAILED, ["--resume", "standard output"]),
        (&["--out=-", "--db=a", "--collection=b", "--resume"], FAILED, ["--resume", "standard output"]),
        (&["--out=-"], FAILED, ["--out=-", "--collection"]),
    ];
    for (arguments, status, words) in cases {
        refused(&[&["dump"], *arguments].concat(), *status, *words);
    }
}

#[test]
fn a_restore_refuses_what_it_would_ignore() {
    let cases: &[(&[&str], i32, [&str; 2])] = &[
        (&["--dbpath=d", "--port=1"], USAGE, ["--dbpath", "--port"]),
        (&["--quiet", "--log-format=text"], USAGE, ["--quiet", "--log-format"]),
        (&["--noIndexRestore", "--keepIndexVersion"], USAGE, ["--noIndexRestore", "--keepIndexVersion"]),
        (&["--preserveUUID"], USAGE, ["required", "--drop"]),
        (&["--oplogLimit=1"], USAGE, ["required", "--oplogReplay"]),
        (&["--oplogFile=f"], USAGE, ["required", "--oplogReplay"]),
        (&["--dir=d", "--archive=a"], USAGE, ["--dir", "--archive"]),
        (&["d", "--archive=a"], USAGE, ["[DIR or FILE]", "--archive"]),
        (&["--archive", "--resume"], FAILED, ["--resume", "standard input"]),
        (&["--archive", "--resumeFile=f"], FAILED, ["--resumeFile", "standard input"]),
        (&["-", "--db=a", "--collection=b", "--resume"], FAILED, ["--resume", "standard input"]),
        (&["--collection=b", "x"], FAILED, ["--collection", "--db"]),
        (&["--restoreDbUsersAndRoles"], FAILED, ["--restoreDbUsersAndRoles", "--db"]),
        (&["--restoreDbUsersAndRoles", "--db=admin"], FAILED, ["--restoreDbUsersAndRoles", "--db admin"]),
        (&["--uri=mongodb://h/a", "--db=b", "x"], FAILED, ["--db b", "'a'"]),
        (&["--oplogReplay", "--oplogFile=f", "--resume"], FAILED, ["--resume", "oplog alone"]),
        (&["--oplogReplay", "--oplogFile=f", "--resumeFile=s"], FAILED, ["--resumeFile", "oplog alone"]),
        (&["--oplogReplay", "--oplogFile=f", "--verify"], FAILED, ["--verify", "--oplogReplay"]),
        (&["--verify", "--oplogReplay", "x"], FAILED, ["--verify", "--oplogReplay"]),
        (
            &["--maintainInsertionOrder", "--numInsertionWorkersPerCollection=2", "x"],
            FAILED,
            ["--maintainInsertionOrder", "--numInsertionWorkersPerCollection"],
        ),
    ];
    for (arguments, status, words) in cases {
        refused(&[&["restore"], *arguments].concat(), *status, *words);
    }
}

#[test]
fn an_import_refuses_what_it_would_ignore() {
    let cases: &[(&[&str], i32, [&str; 2])] = &[
        (&["--type=xml", "f"], USAGE, ["--type", "xml"]),
        (&["--headerline", "f"], FAILED, ["--headerline", "--type csv"]),
        (&["--ignoreBlanks", "--type=bson", "f"], FAILED, ["--ignoreBlanks", "--type csv"]),
        (&["--jsonArray", "--type=csv", "--headerline", "f"], FAILED, ["--jsonArray", "--type json"]),
        (&["--jsonArray", "--type=bson", "f"], FAILED, ["--jsonArray", "--type json"]),
        (&["--type=csv", "f"], FAILED, ["--headerline", "--fieldFile"]),
        (&["--type=csv", "--headerline", "--fields=a", "f"], USAGE, ["--headerline", "--fields"]),
        (&["--type=csv", "--headerline", "--parseGrace=stop", "f"], USAGE, ["required", "--columnsHaveTypes"]),
        (&["--mode=insert", "--upsertFields=a", "f"], FAILED, ["--upsertFields", "--mode"]),
        (&["--mode=delete", "--upsertFields=a", "--resume=s", "f"], FAILED, ["--resume", "--mode delete"]),
        (
            &["--mode=delete", "--bypassDocumentValidation", "f"],
            FAILED,
            ["--bypassDocumentValidation", "--mode delete"],
        ),
        (&["--collection=c", "--resume=s"], FAILED, ["--resume", "standard input"]),
        (
            &["--maintainInsertionOrder", "--numInsertionWorkers=2", "f"],
            FAILED,
            ["--numInsertionWorkers", "--maintain"],
        ),
        (&["--type=parquet", "f"], USAGE, ["--type", "not supported yet"]),
        (&["--type=xml", "f"], USAGE, ["--type", "json, csv, tsv and bson"]),
        (&["--numInsertionWorkers=65", "f"], FAILED, ["--numInsertionWorkers", "64"]),
        (&["--file=f", "f"], USAGE, ["--file", "[FILE]"]),
        (&["--uri=mongodb://h/a", "--db=b", "f"], FAILED, ["--db b", "'a'"]),
        (&["--writeConcern=51", "f"], FAILED, ["--writeConcern", "51"]),
    ];
    for (arguments, status, words) in cases {
        refused(&[&["import"], *arguments].concat(), *status, *words);
    }
}

#[test]
fn an_export_refuses_what_it_would_ignore() {
    let cases: &[(&[&str], i32, [&str; 2])] = &[
        (&["--db=a"], USAGE, ["required", "--collection"]),
        (&["-c=c", "--type=xml"], USAGE, ["--type", "json, csv, tsv, bson and parquet"]),
        (&["-c=c", "--type=csv"], FAILED, ["--type csv", "--fields"]),
        (&["-c=c", "--type=parquet", "--fields=a,b,a"], FAILED, ["--type parquet", "twice"]),
        (&["-c=c", "--type=csv", "--fields=a", "--pretty"], FAILED, ["--pretty", "--type json"]),
        (&["-c=c", "--type=bson", "--jsonFormat=relaxed"], FAILED, ["--jsonFormat", "--type json"]),
        (&["-c=c", "--noHeaderLine"], FAILED, ["--noHeaderLine", "--type csv"]),
        (&["-c=c", "--query={}", "--queryFile=f"], USAGE, ["--query", "--queryFile"]),
        (&["-c=c", "--query={"], FAILED, ["--query", "line 1"]),
        (&["-c=c", "--forceTableScan", "--sort={\"a\": 1}"], FAILED, ["--forceTableScan", "--sort"]),
        (&["-c=c", "--fields=a..b"], FAILED, ["--fields", "empty"]),
        (&["-c=c", "--dbpath=d", "--readPreference=secondary"], USAGE, ["--dbpath", "--readPreference"]),
    ];
    for (arguments, status, words) in cases {
        refused(&[&["export"], *arguments].concat(), *status, *words);
    }
}

#[test]
fn commands_without_a_server_or_a_restore_refuse_flags_for_them() {
    let of_lists = [
        "--uri=mongodb://h",
        "--host=h",
        "--port=1",
        "--username=u",
        "--password=p",
        "--authenticationDatabase=a",
        "--authenticationMechanism=PLAIN",
        "--tls",
        "--dbpath=d",
        "--storage-engine=mmap",
        "--log-format=json",
        "--dryRun",
        "--drop",
        "--writeConcern=1",
        "--noIndexRestore",
        "--noOptionsRestore",
        "--keepIndexVersion",
        "--stopOnError",
        "--maintainInsertionOrder",
        "--numParallelCollections=1",
        "--numInsertionWorkersPerCollection=1",
        "--batchSize=1",
        "--bypassDocumentValidation",
        "--objcheck",
        "--preserveUUID",
        "--oplogReplay",
        "--oplogLimit=1",
        "--oplogFile=f",
        "--resume",
        "--resumeFile=f",
        "--verify",
        "--tune",
        "--noBulk",
    ];
    let of_dry_runs = ["--resume", "--resumeFile=f", "--verify", "--tune"];
    let of_trials = [
        "--resume",
        "--resumeFile=f",
        "--verify",
        "--drop",
        "--nsFrom=a.*",
        "--nsTo=b.*",
        "--noIndexRestore",
        "--keepIndexVersion",
        "--oplogReplay",
        "--oplogLimit=1",
        "--oplogFile=f",
        "--restoreDbUsersAndRoles",
        "--maintainInsertionOrder",
        "--log-format=json",
    ];
    for (mode, flags) in [("--list", &of_lists[..]), ("--dryRun", &of_dry_runs), ("--tune", &of_trials)] {
        for flag in flags {
            let name = flag.split('=').next().expect("a name");
            refused(&["restore", mode, flag], USAGE, [mode, name]);
        }
    }
}

#[test]
fn lists_and_dry_runs_ask_no_server() {
    let dump = archive(&fixture("fixture.archive"));
    let listed = output(&["restore", "--list", &dump, "--db=fixture", "--collection=types"]);
    let stdout = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.status.success() && listed.stderr.is_empty(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(stdout.starts_with("fixture.types\tcollection\t") && stdout.lines().count() == 1, "{stdout}");
    // A dry run accepts all flags of the restore to come, and does not create a missing directory.
    let to_come = ["restore", "--dryRun", &dump, "--dbpath=missing", "--drop", "--noIndexRestore", "--writeConcern=1"];
    let rehearsed = output(&to_come);
    let said = String::from_utf8_lossy(&rehearsed.stderr);
    assert!(rehearsed.status.success() && said.contains("fixture.types: restored, 29 document(s)"), "{said}");
    let without_oplog = output(&["restore", "--dryRun", &dump, "--oplogReplay"]);
    let said = String::from_utf8_lossy(&without_oplog.stderr);
    assert!(without_oplog.status.code() == Some(FAILED) && said.contains("no oplog to replay"), "{said}");
    let with_oplog = output(&["restore", "--dryRun", &archive(&fixture("bank.oplog.archive")), "--oplogReplay"]);
    assert!(with_oplog.status.success(), "{}", String::from_utf8_lossy(&with_oplog.stderr));
}

#[test]
fn a_database_in_the_connection_string_is_the_one_that_is_meant() {
    let running = Running::start();
    let mut connection = connect(running.address());
    for database in ["shop", "blog"] {
        insert(&mut connection, database, "c", &[DocumentBuf::new().with("_id", 1)]);
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = archive(&directory.path().join("a"));
    let run = |arguments: &[&str]| {
        let output = Command::new(binary()).args(arguments).output().expect("the tool runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let uri = |database: &str| format!("--uri=mongodb://{}/{database}", running.address());
    let listed = |file: &str| run(&["restore", "--list", file]);
    run(&["dump", &uri("shop"), "--collection=c", &file]);
    assert_eq!(listed(&file), "shop.c\tcollection\t14 bytes\n");
    succeed("dump", running.address(), &[&file]);
    let said = run(&["restore", &uri("blog"), "--drop", &file]);
    assert!(said.contains("blog.c: restored") && !said.contains("shop"), "{said}");
}

/// The report of a failed restore, with `--quiet` and as JSON.
#[test]
fn errors_are_reported_in_quiet_and_as_json() {
    let running = Running::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("archive");
    let equal = |count: i32| {
        let documents = (0..count).map(|id| DocumentBuf::new().with("_id", id).with("s", "equal"));
        documents.flat_map(|document| document.as_ref().as_bytes().to_vec()).collect::<Vec<u8>>()
    };
    let dumped = |name, documents| Dumped {
        database: "fixture",
        name,
        kind: "collection",
        block: name,
        documents,
        metadata: String::new(),
    };
    // The documents violate the unique index.
    let unique = r#"{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"},{"v":2,"unique":true,"key":{"s":1},"name":"once_s"}],"collectionName":"numbers","type":"collection"}"#;
    write_archive(
        &path,
        &[dumped("uniq", equal(100)), Dumped { metadata: unique.to_owned(), ..dumped("numbers", equal(2000)) }],
    );
    let dump = archive(&path);
    let state = directory.path().join("state");
    let restore = |flags: &[&str]| {
        let all =
            [&[dump.as_str(), "--drop", "--nsInclude=fixture.uniq", "--nsInclude=fixture.numbers"], flags].concat();
        tool::fail("restore", running.address(), &[&all[..], &["--resumeFile", text(&state)]].concat())
    };
    let said = restore(&["--quiet"]);
    assert!(
        said.starts_with("fixture.numbers: restored") && said.contains("index once_s: Index build failed"),
        "{said}"
    );
    assert!(!said.contains("uniq"), "{said}");
    let said = restore(&["--log-format=json"]);
    assert!(said.lines().all(|line| line.starts_with(r#"{"event":""#) && line.ends_with('}')), "{said}");
    let summary = said.lines().last().expect("a summary");
    for part in [
        r#"{"event":"summary","#,
        r#""target":"fixture.uniq","kind":"collection","state":"restored","documents":100,"#,
        r#""target":"fixture.numbers","kind":"collection","state":"restored","documents":2000,"#,
        r#""indexesRefused":["once_s: Index build failed"#,
    ] {
        assert!(summary.contains(part), "{part} is not in {summary}");
    }
    assert!(!Path::new(&state).exists());
}
