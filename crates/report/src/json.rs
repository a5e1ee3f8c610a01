//! The file of a report.

use crate::conclusions::Concluded;
use crate::error::ReportError;
use crate::result::{FORMAT, Report};
use serde::Deserialize;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The one field that every version of the format has.
#[derive(Deserialize)]
struct Versioned {
    format: u64,
}

impl Report {
    /// Reads a report.
    /// # Errors
    /// The file cannot be read, is not a report, or has another format; each error names the file.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = fs::read_to_string(path).map_err(|error| ReportError::Io { path: path.to_owned(), error })?;
        let not_a_report =
            |error: serde_json::Error| ReportError::NotAReport { path: path.to_owned(), detail: error.to_string() };
        // The version is checked first: an error about a field of another format would only confuse.
        let Versioned { format } = serde_json::from_str(&text).map_err(not_a_report)?;
        if format != u64::from(FORMAT) {
            return Err(ReportError::Format { path: path.to_owned(), found: format });
        }
        serde_json::from_str(&text).map_err(not_a_report)
    }

    /// Writes the report and its conclusions as JSON on one line.
    /// # Errors
    /// Errors of the file system.
    pub fn write_json(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(fs::File::create(path)?);
        serde_json::to_writer(&mut file, &Concluded::of(self))?;
        file.write_all(b"\n")?;
        file.flush()
    }

    /// The report and its conclusions as JSON on one line.
    ///
    /// # Panics
    /// Never: the model has string keys only.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&Concluded::of(self)).expect("the model has string keys only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Programs that read the file find the conclusions that the terminal shows.
    #[test]
    fn conclusions_stand_beside_the_figures() {
        let mut report = fixture::restores();
        report.steps.iter_mut().for_each(|step| step.runs.truncate(1));
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let conclusions = &json["conclusions"];
        assert_eq!(conclusions["verdict"], report.verdict());
        assert_eq!(conclusions["badges"][0]["text"], "single run");
        assert_eq!(conclusions["steps"][3]["badges"][0]["text"], "single run");
        let recommendation = conclusions["recommendations"][0].as_str().unwrap();
        assert!(recommendation.starts_with("nothing is recommended for restore"), "{recommendation}");
        let findings = conclusions["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding.as_str().unwrap().starts_with("single run: ")), "{findings:?}");
    }

    #[test]
    fn written_reports_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        for (name, make) in fixture::ALL {
            let report = make();
            report.write_json(&path).unwrap();
            assert!(Report::read(&path).unwrap() == report, "{name}");
        }
    }

    #[test]
    fn files_that_are_not_reports_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        let refusal = |text: &str| {
            fs::write(&path, text).unwrap();
            Report::read(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE")
        };
        assert_eq!(refusal(r#"{"format": 7, "new": true}"#), "FILE: a report of format 7; this program reads format 1");
        assert_eq!(refusal("{}"), "FILE: not a report: missing field `format` at line 1 column 2");
        assert_eq!(refusal("[1"), "FILE: not a report: EOF while parsing a list at line 1 column 2");
        assert!(refusal(r#"{"format": 1}"#).starts_with("FILE: not a report: missing field `lab_version`"));
        fs::remove_file(&path).unwrap();
        let missing = Report::read(&path).unwrap_err().to_string();
        assert!(missing.starts_with(&path.display().to_string()), "{missing}");
    }
}
