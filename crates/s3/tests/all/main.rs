//! A bucket on a server that answers by a script: attempts, refusals, uploads in parts.

mod scripted;

use bunko_host::Clock;
use bunko_s3::{Address, Bucket, Condition, Depth, Kind, Patience, S3Error, Settings, Upload};
use scripted::{Reaction, Scripted};
use std::fs;
use std::time::Duration;

const MIB: usize = 1 << 20;
const PATIENCE: Patience = Patience {
    attempts: 4,
    pause: Duration::from_millis(2),
    pause_max: Duration::from_millis(4),
    connect: Duration::from_secs(30),
    silence: Duration::from_secs(30),
};

fn bucket_with(server: &Scripted, patience: Patience, set: &[(&str, &str)]) -> Bucket {
    let keys =
        [("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "S"), ("AWS_ENDPOINT_URL", server.endpoint.as_str())];
    let variable = |name: &str| {
        let known = set.iter().chain(&keys).find(|(known, _)| *known == name);
        known.map(|(_, value)| (*value).to_owned())
    };
    let address = Address::parse("s3://bucket/db").expect("an address");
    let mut settings = Settings::of_environment(address, &variable).expect("settings");
    settings.patience = patience;
    Bucket::open(settings, Clock::machine()).expect("opens")
}

fn bucket(server: &Scripted) -> Bucket {
    bucket_with(server, PATIENCE, &[])
}

fn ok(body: &str) -> Reaction {
    Reaction::Answer(200, Vec::new(), body.to_owned())
}

fn tagged(tag: &str) -> Reaction {
    Reaction::Answer(200, vec![("ETag", tag.to_owned())], String::new())
}

fn refusal(status: u16, code: &str) -> Reaction {
    let body = format!("<Error><Code>{code}</Code><Message>in words</Message></Error>");
    Reaction::Answer(status, Vec::new(), body)
}

fn read(bucket: &Bucket) -> Result<Option<Vec<u8>>, S3Error> {
    bucket.get("a", (0, 100), None).map(|part| part.map(|part| part.bytes))
}

#[test]
fn failures_that_pass_are_tried_again() {
    let unavailable = [refusal(503, "SlowDown"), refusal(500, "InternalError"), Reaction::Cut];
    let server = Scripted::start([&unavailable[..], &[ok("whole")]].concat());
    assert_eq!(read(&bucket(&server)), Ok(Some(b"whole".to_vec())));
    assert_eq!(server.lines(), ["GET /bucket/db/a"; 4]);

    let cut = Reaction::CutAnswer("whole".to_owned());
    let bare = |status| Reaction::Answer(status, Vec::new(), String::new());
    let server = Scripted::start(vec![cut, bare(429), bare(502), ok("whole")]);
    assert_eq!(read(&bucket(&server)), Ok(Some(b"whole".to_vec())));

    let server = Scripted::start(vec![Reaction::Silence, ok("whole")]);
    let hasty = Patience { silence: Duration::from_millis(500), ..PATIENCE };
    assert_eq!(read(&bucket_with(&server, hasty, &[])), Ok(Some(b"whole".to_vec())));
    assert_eq!(server.lines().len(), 2);
}

#[test]
fn patience_ends_with_an_error_that_names_all() {
    let server = Scripted::start(vec![refusal(503, "SlowDown"); 4]);
    let error = bucket(&server).put("a", b"bytes", Condition::None).expect_err("unavailable");
    assert_eq!(error.kind, Kind::Unavailable);
    for word in ["s3://bucket/db/a", "write", "SlowDown", "503", "4 attempts"] {
        assert!(error.to_string().contains(word), "'{word}' is not in: {error}");
    }
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.body == b"bytes" && !request.header("authorization").is_empty()));
    // Nothing listens there any more.
    let error = read(&bucket(&Scripted::gone())).expect_err("unreachable").to_string();
    assert!(error.contains("s3://bucket/db/a") && error.contains("127.0.0.1:1"), "{error}");
}

#[test]
fn refusals_are_not_tried_again_and_say_what_to_do() {
    let ahead = Reaction::Answer(
        403,
        vec![("Date", "Wed, 01 Jan 2020 00:00:00 GMT".to_owned())],
        "<Error><Code>RequestTimeTooSkewed</Code></Error>".to_owned(),
    );
    let moved = Reaction::Answer(301, vec![("x-amz-bucket-region", "eu-west-3".to_owned())], String::new());
    for (reaction, words) in [
        (refusal(403, "AccessDenied"), &["AccessDenied", "403", "in words", "GetObject"][..]),
        (refusal(404, "NoSuchBucket"), &["NoSuchBucket", "create the bucket"]),
        (refusal(400, "ExpiredToken"), &["ExpiredToken", "renew"]),
        (refusal(403, "InvalidAccessKeyId"), &["InvalidAccessKeyId", "AWS_ACCESS_KEY_ID"]),
        (refusal(403, "SignatureDoesNotMatch"), &["SignatureDoesNotMatch", "secret key"]),
        (moved, &["301", "AWS_REGION=eu-west-3"]),
        (ahead, &["RequestTimeTooSkewed", "s ahead of the server's"]),
    ] {
        let server = Scripted::start(vec![reaction]);
        let error = read(&bucket(&server)).expect_err("refused");
        assert_eq!(error.kind, Kind::Refused, "{error}");
        for word in words.iter().chain(&["s3://bucket/db/a"]) {
            assert!(error.to_string().contains(word), "'{word}' is not in: {error}");
        }
        assert_eq!(server.lines().len(), 1);
    }
    let server = Scripted::start(vec![refusal(404, "NoSuchKey"), refusal(412, "PreconditionFailed")]);
    assert_eq!(read(&bucket(&server)), Ok(None));
    let error = bucket(&server).put("lock", b"", Condition::IsNew).expect_err("there is one");
    assert_eq!(error.kind, Kind::ConditionFailed);
    assert_eq!(server.requests()[1].header("if-none-match"), "*");
}

#[test]
fn expired_credentials_are_read_again() {
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    let keys = |name: &str| format!("[default]\naws_access_key_id={name}\naws_secret_access_key=S\n");
    fs::write(file.path(), keys("OLD")).expect("written");
    let path = file.path().to_str().expect("text");
    let server = Scripted::start(vec![refusal(400, "ExpiredToken"), ok("whole"), refusal(400, "ExpiredToken")]);
    let set = [("AWS_SHARED_CREDENTIALS_FILE", path), ("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    let bucket = bucket_with(&server, PATIENCE, &set);
    fs::write(file.path(), keys("NEW")).expect("written");
    assert_eq!(read(&bucket), Ok(Some(b"whole".to_vec())));
    assert!(read(&bucket).is_err(), "the file has no others");
    let used: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization")[..40].to_owned()).collect();
    assert!(used[0].contains("=OLD/") && used[1].contains("=NEW/") && used[2].contains("=NEW/"), "{used:?}");
}

/// Uploads an object of that length, in steps of 3 MiB.
fn upload(bucket: &Bucket, bytes: usize) -> Result<(), S3Error> {
    let mut upload = Upload::new(bucket, "a", bytes as u64);
    let content: Vec<u8> = (0..bytes).map(|at| (at / MIB) as u8).collect();
    for step in content.chunks(3 * MIB) {
        upload.add(step)?;
    }
    upload.finish()
}

const BEGUN: &str = "<R><UploadId>id&amp;1</UploadId></R>";

#[test]
fn a_long_object_is_stored_in_parts() {
    let server = Scripted::start(vec![
        ok(BEGUN),
        tagged("\"one\""),
        refusal(503, "SlowDown"),
        tagged("\"two\""),
        tagged("\"three\""),
        // The server may notice late that it cannot complete the upload.
        ok("<Error><Code>InternalError</Code></Error>"),
        ok("<R/>"),
        tagged("short"),
    ]);
    let bucket = bucket(&server);
    assert_eq!(upload(&bucket, 16 * MIB + 1), Ok(()));
    assert_eq!(upload(&bucket, 8 * MIB), Ok(()));
    let requests = server.requests();
    let lines: Vec<_> = requests.iter().map(|request| (request.line.as_str(), request.body.len())).collect();
    let part = |number| format!("PUT /bucket/db/a?partNumber={number}&uploadId=id%261");
    assert_eq!(lines[0], ("POST /bucket/db/a?uploads=", 0));
    assert_eq!(lines[1], (part(1).as_str(), 8 * MIB));
    assert_eq!(lines[2..4], [(part(2).as_str(), 8 * MIB); 2]);
    assert_eq!(lines[4], (part(3).as_str(), 1));
    let complete = String::from_utf8_lossy(&requests[6].body).into_owned();
    assert!(complete.contains("<PartNumber>3</PartNumber><ETag>\"three\"</ETag>"), "{complete}");
    assert_eq!(lines[7], ("PUT /bucket/db/a", 8 * MIB));
}

#[test]
fn an_upload_that_fails_is_aborted_and_one_whose_answer_was_lost_is_found() {
    let server = Scripted::start(vec![ok(BEGUN), refusal(403, "AccessDenied"), ok("")]);
    let error = upload(&bucket(&server), 9 * MIB).expect_err("refused");
    assert_eq!(error.code, "AccessDenied");
    assert_eq!(server.lines()[2], "DELETE /bucket/db/a?uploadId=id%261");

    let found = |total: usize| Reaction::Answer(206, vec![("Content-Range", format!("bytes 0-0/{total}"))], "x".into());
    let lost =
        |total| vec![ok(BEGUN), tagged("1"), tagged("2"), Reaction::Cut, refusal(404, "NoSuchUpload"), found(total)];
    let server = Scripted::start(lost(9 * MIB));
    assert_eq!(upload(&bucket(&server), 9 * MIB), Ok(()));
    let server = Scripted::start([lost(5), vec![ok("")]].concat());
    assert_eq!(upload(&bucket(&server), 9 * MIB).expect_err("another object").code, "NoSuchUpload");
    assert!(server.lines().last().is_some_and(|line| line.starts_with("DELETE")));
}

#[test]
fn uploads_that_others_have_left_are_aborted() {
    let listed = "<R><Upload><Key>db/a</Key><UploadId>1</UploadId></Upload><Upload><Key>db/b</Key><UploadId>2</UploadId></Upload>\
        <IsTruncated>true</IsTruncated></R>";
    let server = Scripted::start(vec![ok(listed), ok(""), refusal(404, "NoSuchUpload"), ok("<R></R>")]);
    assert_eq!(bucket(&server).abort_uploads(), Ok(2));
    let lines = server.lines();
    assert_eq!(lines[0], "GET /bucket/?prefix=db%2F&uploads=");
    assert_eq!(lines[1..3], ["DELETE /bucket/db/a?uploadId=1", "DELETE /bucket/db/b?uploadId=2"]);
}

#[test]
fn lists_go_on_until_they_end() {
    let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>7</Size></Contents>");
    let first = format!(
        "<R>{}{}<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;</NextContinuationToken></R>",
        object("db/files/a&amp;b"),
        "<CommonPrefixes><Prefix>db/files/c/</Prefix></CommonPrefixes>"
    );
    let second = format!("<R>{}<IsTruncated>false</IsTruncated></R>", object("db/files/d"));
    let server = Scripted::start(vec![ok(&first), ok(&second)]);
    let mut found = Vec::new();
    let listed = bucket(&server).list("files/", Depth::Children, &mut |name, bytes| {
        found.push((name, bytes));
        true
    });
    assert_eq!(listed, Ok(()));
    let names: Vec<_> = found.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    assert_eq!(names, [("files/a&b", 7), ("files/c/", 0), ("files/d", 7)]);
    let lines = server.lines();
    assert_eq!(lines[0], "GET /bucket/?delimiter=%2F&list-type=2&prefix=db%2Ffiles%2F");
    assert!(lines[1].contains("continuation-token=t%26"), "{lines:?}");
}

#[test]
fn ranges_of_an_object_are_read_as_long_as_it_is_the_same() {
    let range = |from: u64, body: &str| {
        let headers = vec![("Content-Range", format!("bytes {from}-{}/9", from + 3)), ("ETag", "\"t\"".to_owned())];
        Reaction::Answer(206, headers, body.to_owned())
    };
    let server =
        Scripted::start(vec![range(0, "abcd"), refusal(412, "PreconditionFailed"), refusal(416, "InvalidRange")]);
    let bucket = bucket(&server);
    let part = bucket.get("a", (0, 4), None).expect("readable").expect("there");
    assert_eq!((part.bytes.as_slice(), part.object.bytes), (&b"abcd"[..], 9));
    let other = bucket.get("a", (4, 4), Some(&part.object.tag)).expect_err("another object");
    assert_eq!(other.kind, Kind::ConditionFailed);
    assert_eq!(bucket.get("empty", (0, 4), None).expect("readable").expect("there").object.bytes, 0);
    let requests = server.requests();
    assert_eq!((requests[1].header("range"), requests[1].header("if-match")), ("bytes=4-7", "\"t\""));
}

#[test]
fn a_server_with_tls_is_trusted_by_its_authority_only() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    fs::write(file.path(), made.cert.pem()).expect("written");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let config = std::sync::Arc::new(config);
    let server = Scripted::start_over("https", vec![ok("whole")], move |socket| {
        let session = rustls::ServerConnection::new(std::sync::Arc::clone(&config)).expect("a session");
        Box::new(rustls::StreamOwned::new(session, socket))
    });
    let once = Patience { attempts: 1, ..PATIENCE };
    let trusting = [("AWS_CA_BUNDLE", file.path().to_str().expect("text"))];
    assert_eq!(read(&bucket_with(&server, once, &trusting)), Ok(Some(b"whole".to_vec())));
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(file.path(), other.cert.pem()).expect("written");
    let error = read(&bucket_with(&server, once, &trusting)).expect_err("not trusted").to_string();
    assert!(error.contains("certificate"), "{error}");
}
