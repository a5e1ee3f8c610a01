//! Reports of the lab: which files are shown, to whom, and what their pages may do.

use super::{Reply, Site};
use bunko_bson::{DocumentBuf, ValueRef, extended_json};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

const PAGE: &str = "<!DOCTYPE html>\n<p>p99 <script>alert(1)</script></p>\n";
const CREDENTIAL: &str = "root:secret@";

/// A folder that holds the directory `reports` and files beside it, and a server that shows the directory.
fn shown(flags: &[&str]) -> (TempDir, Site) {
    let folder = tempfile::tempdir().expect("writable");
    let reports = folder.path().join("reports");
    fs::create_dir(&reports).expect("made");
    fs::write(reports.join("a report.html"), PAGE).expect("written");
    fs::write(folder.path().join("secret.html"), "secret").expect("written");
    let directory = reports.to_str().expect("text").to_owned();
    let flags: Vec<&str> = ["--console-reports", &directory].into_iter().chain(flags.iter().copied()).collect();
    (folder, Site::start(&flags))
}

fn asked(site: &Site, token: &str, name: &str) -> Reply {
    let body = DocumentBuf::new().with("name", name);
    site.post("/api/report", token, &extended_json::to_relaxed(ValueRef::Document(body.as_ref())))
}

/// The address of a report, which may be loaded once.
fn address(site: &Site, token: &str, name: &str) -> String {
    let reply = asked(site, token, name);
    assert_eq!(reply.status, 200, "{name}: {reply:?}");
    reply.body.split('"').nth(3).expect("a path").to_owned()
}

#[test]
fn a_report_opens_once_in_a_page_that_can_do_nothing() {
    let (_folder, site) = shown(&[]);
    assert!(site.get("/api/site").body.contains("\"reports\":true"));
    let token = site.log_in("", "").expect("no login is required");
    let list = site.post("/api/reports", &token, "{}");
    assert!(list.status == 200 && list.body.contains(r#""name":"a report.html","bytes":"#), "{list:?}");
    let path = address(&site, &token, "a report.html");
    assert!(path.starts_with("/report/") && path.len() == "/report/".len() + 64, "{path}");
    let page = site.get(&path);
    assert!(page.status == 200 && page.body == PAGE, "{page:?}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: sandbox allow-scripts; default-src 'none'; script-src 'sha256-",
        "form-action 'none'; frame-ancestors 'none'",
        "x-frame-options: deny",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {page:?}");
    }
    for forbidden in ["allow-same-origin", "script-src 'self'", "connect-src", "set-cookie", "cross-origin-opener"] {
        assert!(!page.head.contains(forbidden), "{forbidden}: {page:?}");
    }
    let scripts = page.head.split("script-src").nth(1).and_then(|rest| rest.split(';').next());
    assert!(scripts.is_some_and(|scripts| !scripts.contains("unsafe")), "{page:?}");
    // The address has been used.
    assert_eq!(site.get(&path).status, 404);
    // The token of a session is not an address.
    assert_eq!(site.get(&format!("/report/{token}")).status, 404);
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let (folder, site) = shown(&[]);
    let reports = folder.path().join("reports");
    symlink(folder.path().join("secret.html"), reports.join("link.html")).expect("linked");
    symlink(folder.path(), reports.join("up.html")).expect("linked");
    fs::create_dir(reports.join("folder.html")).expect("made");
    fs::write(reports.join("folder.html/inner.html"), "secret").expect("written");
    fs::write(reports.join(".hidden.html"), "secret").expect("written");
    fs::write(reports.join("notes.txt"), "secret").expect("written");
    // A pipe without a writer would hold the thread that opens it.
    let pipe = reports.join("pipe.html");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("made");
    let token = site.log_in("", "").expect("no login is required");
    let list = site.post("/api/reports", &token, "{}");
    assert_eq!(list.body.matches("\"name\"").count(), 1, "{list:?}");
    let absolute = folder.path().join("secret.html");
    for name in [
        "../secret.html",
        "..%2fsecret.html",
        "./a report.html",
        "folder.html/inner.html",
        "folder.html",
        "link.html",
        "up.html",
        "up.html/secret.html",
        "pipe.html",
        ".hidden.html",
        "notes.txt",
        "a report.html\0",
        "",
        "none.html",
        absolute.to_str().expect("text"),
    ] {
        let reply = asked(&site, &token, name);
        assert!(reply.status == 404 && !reply.body.contains("secret\""), "{name}: {reply:?}");
    }
    for path in ["/report/", "/report/a%20report.html", "/report/../secret.html", "/report/a report.html", "/reports/"]
    {
        assert!(matches!(site.get(path).status, 400 | 404), "{path}");
    }
    // A file that became a link after its address was made.
    let path = address(&site, &token, "a report.html");
    fs::remove_file(reports.join("a report.html")).expect("removed");
    symlink(folder.path().join("secret.html"), reports.join("a report.html")).expect("linked");
    assert_eq!(site.get(&path).status, 404);
    fs::File::create(reports.join("large.html")).and_then(|file| file.set_len(33 << 20)).expect("made");
    let reply = asked(&site, &token, "large.html");
    assert!(reply.status == 507 && reply.body.contains("large.html has 34603008 bytes"), "{reply:?}");
}

#[test]
fn only_users_and_the_own_page_see_reports() {
    let (_folder, site) = shown(&["--auth"]);
    site.run_as_client("", "admin", "{createUser: 'root', pwd: 'secret', roles: ['root']}");
    site.run_as_client(CREDENTIAL, "admin", "{createUser: 'ann', pwd: 'p', roles: []}");
    for path in ["/api/reports", "/api/report"] {
        for token in ["", "x", &"0".repeat(64)] {
            assert_eq!(site.post(path, token, r#"{"name":"a report.html"}"#).status, 401, "{path}");
        }
    }
    let token = site.log_in("ann", "p").expect("the right password");
    assert_eq!(site.post("/api/reports", &token, "{}").status, 200);
    let own = site.own_headers(&token);
    for (from, to) in [
        (format!("Origin: http://{}", site.address), "Origin: http://evil.example".to_owned()),
        (format!("Origin: http://{}", site.address), "Origin: null".to_owned()),
        ("X-Bunko-Console: 1\r\n".to_owned(), String::new()),
        ("Sec-Fetch-Site: same-origin".to_owned(), "Sec-Fetch-Site: cross-site".to_owned()),
    ] {
        for path in ["/api/reports", "/api/report"] {
            let reply = site.post_with(path, &own.replace(&from, &to), r#"{"name":"a report.html"}"#);
            assert_eq!(reply.status, 403, "{path}: {to}: {reply:?}");
        }
    }
    // The end of the session ends no address, but makes no more of them.
    site.post("/api/logout", &token, "{}");
    assert_eq!(asked(&site, &token, "a report.html").status, 401);
    for wrong in ["{}", r#"{"name":5}"#] {
        let token = site.log_in("ann", "p").expect("the right password");
        assert_eq!(site.post("/api/report", &token, wrong).status, 400, "{wrong}");
    }
}

#[test]
fn a_console_without_the_setting_shows_no_reports() {
    let site = Site::start(&[]);
    assert!(site.get("/api/site").body.contains("\"reports\":false"));
    let token = site.log_in("", "").expect("no login is required");
    assert_eq!(site.post("/api/reports", &token, "{}").status, 404);
    assert_eq!(asked(&site, &token, "a report.html").status, 404);
    assert_eq!(site.get(&format!("/report/{}", "0".repeat(64))).status, 404);
    let dbpath = temporary_dbpath();
    let refusal = |flags: &[&str]| Server::start(&crate::peer::binary(), dbpath.path(), flags).expect_err("refused");
    let error = refusal(&["--console-reports", "/"]);
    assert!(error.contains("net.consoleReports") && error.contains("needs net.console"), "{error}");
    let missing = Path::new("/nowhere/reports").to_str().expect("text");
    let error = refusal(&["--console", "0", "--console-reports", missing]);
    assert!(error.contains("/nowhere/reports is not a directory"), "{error}");
}
