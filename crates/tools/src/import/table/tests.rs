use super::*;
use crate::import::cutter::{Cut, Cutter};
use crate::import::options::{Blanks, ColumnTypes, FieldNames, Grace, Positions, TableOptions};
use bunko_bson::extended_json::to_relaxed;
use bunko_bson::{DocumentRef, ValueRef};

fn options() -> TableOptions {
    TableOptions {
        separator: Separator::Comma,
        fields: FieldNames::HeaderLine,
        types: ColumnTypes::Automatic,
        grace: Grace::Stop,
        blanks: Blanks::Keep,
        positions: Positions::AsNames,
    }
}

/// The documents of a table with these columns, or the flaw.
fn read(columns: &str, text: &str, options: &TableOptions) -> Result<Vec<String>, String> {
    let names: Vec<String> = columns.split(',').map(str::to_owned).collect();
    let columns = Columns::new(&names, options)?;
    let mut records = TableRecords::new(text, &columns);
    let mut found = Vec::new();
    loop {
        let mut out = Vec::new();
        match records.next(&mut out) {
            Ok(None) => return Ok(found),
            Ok(Some((_, Row::Skipped))) => found.push("skipped".into()),
            Ok(Some(_)) => {
                let document = DocumentRef::parse(&out).map_err(|error| error.to_string())?;
                found.push(to_relaxed(ValueRef::Document(document)));
            }
            Err(flaw) => return Err(format!("{}: {}", flaw.offset, flaw.reason)),
        }
    }
}

#[test]
fn values_are_those_of_rfc_4180() {
    let shown = |text| read("a,b", text, &options()).map(|found| found.join(" "));
    assert_eq!(shown("1,x\r\n\"2\",\"y\"\"y\n,z\"\n").as_deref(), Ok(r#"{"a":1,"b":"x"} {"a":2,"b":"y\"y\n,z"}"#));
    assert_eq!(shown("1\n,\n\n 5, -1.5,3\n").as_deref(), Ok(r#"{"a":1} {"a":"","b":""} {"a":5,"b":-1.5,"field2":3}"#));
    assert_eq!(
        shown("9223372036854775807,9223372036854775808").as_deref(),
        Ok(r#"{"a":9223372036854775807,"b":9.223372036854775808E+18}"#)
            .map(|_| r#"{"a":9223372036854775807,"b":9.223372036854776E+18}"#)
    );
    assert_eq!(shown("NaN,inf").as_deref(), Ok(r#"{"a":"NaN","b":"inf"}"#));
    assert_eq!(shown("1,a\"b").map_err(|error| error.contains("3: a quote inside")), Err(true));
    assert_eq!(shown("1,\"ab").map_err(|error| error.contains("2: the quote that opens here")), Err(true));
    assert_eq!(shown("1,\"a\"b").map_err(|error| error.contains("after a closing quote, found \"b\"")), Err(true));
    assert_eq!(shown("\"1\"\t,2\n").map_err(|error| error.contains("after a closing quote")), Err(true));
    let tab = TableOptions { separator: Separator::Tab, ..options() };
    assert_eq!(read("a,b", "\"1\",2\t3\n", &tab).map_err(|error| error.contains("after a closing quote")), Err(true));
    assert_eq!(
        read("a,b", "1, 2\t\"x\ty\"\n3\t4\"", &tab).map(|found| found.join(" ")),
        Ok(r#"{"a":"1, 2","b":"x\ty"} {"a":3,"b":"4\""}"#.into())
    );
}

#[test]
fn dotted_names_make_documents_and_arrays() {
    let arrays = TableOptions { positions: Positions::AsIndexes, blanks: Blanks::Ignore, ..options() };
    assert_eq!(read("a.b,c,a.d", "1,2,3", &options()), Ok(vec![r#"{"a":{"b":1,"d":3},"c":2}"#.into()]));
    assert_eq!(read("a.0,a.1", "1,2", &options()), Ok(vec![r#"{"a":{"0":1,"1":2}}"#.into()]));
    let text = "1,2,3\n,,\n1,,3\n1,,";
    let found = read("a.0,a.1,a.2.x", text, &arrays).expect("read");
    assert_eq!(found, [r#"{"a":[1,2,{"x":3}]}"#, "{}", r#"{"a":[1,null,{"x":3}]}"#, r#"{"a":[1]}"#]);
    for (columns, words) in
        [("a,a.b", "contradicts"), ("a.b,a", "contradicts"), ("a,a", "twice"), ("a..b", "path"), ("", "path")]
    {
        assert!(read(columns, "1", &options()).is_err_and(|error| error.contains(words)), "{columns}");
    }
    assert!(read("a.1,a.0", "1,2", &arrays).is_err_and(|error| error.contains("positions")));
    assert!(read("a.0,a.x", "1,2", &arrays).is_err_and(|error| error.contains("positions")));
}

#[test]
fn columns_have_types() {
    let declared = TableOptions { types: ColumnTypes::Declared, ..options() };
    let one = |column: &str, value: &str| read(column, value, &declared).map(|found| found.join(" "));
    for (column, value, shown) in [
        ("x.auto()", "7", "7"),
        ("x.string()", "7", "\"7\""),
        ("x.int32()", "-7", "-7"),
        ("x.int64()", "9007199254740993", "9007199254740993"),
        ("x.double()", "7", "7.0"),
        ("x.decimal()", "1.10", r#"{"$numberDecimal":"1.10"}"#),
        ("x.boolean()", "TRUE", "true"),
        ("x.boolean()", "0", "false"),
        ("x.binary(hex)", "00fF", r#"{"$binary":{"base64":"AP8=","subType":"00"}}"#),
        ("x.binary(base64)", "AP8=", r#"{"$binary":{"base64":"AP8=","subType":"00"}}"#),
        ("x.binary(base32)", "AD7Q====", r#"{"$binary":{"base64":"AP8=","subType":"00"}}"#),
        ("x.date(2006-01-02 15:04:05)", "2020-02-29 12:00:01.5", r#"{"$date":"2020-02-29T12:00:01.500Z"}"#),
        (
            "x.date_go(Jan _2\\, 2006 at 3:04pm \\(-0700\\))",
            "Feb  3\\, 2013 at 7:54pm (+0100)",
            r#"{"$date":"2013-02-03T18:54:00Z"}"#,
        ),
        ("x.date_ms(dd.MM.yyyy H:mm:ss.fff)", "03.02.2013 7:54:00.250", r#"{"$date":"2013-02-03T07:54:00.250Z"}"#),
        ("x.date_oracle(DD-MON-RR HH24:MI)", "03-feb-70 07:54", r#"{"$date":"1970-02-03T07:54:00Z"}"#),
    ] {
        let (column, value) = (column.replace("\\,", ""), value.replace("\\,", ""));
        assert_eq!(one(&column, &value), Ok(format!("{{\"x\":{shown}}}")), "{column}");
    }
    for (column, value, words) in [
        ("x.int32()", "2147483648", "column \"x\": \"2147483648\" is not an int32"),
        ("x.int64()", "9223372036854775808", "is not an int64"),
        ("x.double()", "1e999", "is not a double"),
        ("x.boolean()", "yes", "is not a boolean"),
        ("x.date(2006-01-02)", "2019-02-29", "is not a date"),
        ("x.binary(hex)", "0", "is not binary data"),
        ("x", "1", "has no type"),
        ("x.int32(4)", "1", "has no argument"),
        ("x.uuid()", "1", "there is no type \"uuid\""),
        ("x.binary(rot13)", "1", "\"rot13\""),
        ("x.date(15:04)", "1", "has no year"),
        ("x.date(2006 MST)", "1", "not supported yet"),
        ("x.date_oracle(J)", "1", "not supported yet"),
    ] {
        assert!(one(column, value).is_err_and(|error| error.contains(words)), "{column} {:?}", one(column, value));
    }
}

#[test]
fn misfits_are_handled_as_asked() {
    let with = |grace| TableOptions { types: ColumnTypes::Declared, grace, ..options() };
    let read = |grace| read("a.int32(),b.string()", "x,y\n1,z", &with(grace)).map(|found| found.join(" "));
    assert_eq!(read(Grace::AutoCast).as_deref(), Ok(r#"{"a":"x","b":"y"} {"a":1,"b":"z"}"#));
    assert_eq!(read(Grace::SkipField).as_deref(), Ok(r#"{"b":"y"} {"a":1,"b":"z"}"#));
    assert_eq!(read(Grace::SkipRow).as_deref(), Ok(r#"skipped {"a":1,"b":"z"}"#));
    assert!(read(Grace::Stop).is_err());
}

#[test]
fn text_is_cut_behind_records_only() {
    let text = b"a,\"b\n\"\"\n\",c\n  \"x\ny\",z\nlast";
    for block in 1..text.len() {
        let (mut cutter, mut at, mut found) = (TableCutter::new(Separator::Comma), 0, Vec::new());
        for fresh in text.chunks(block) {
            if let Cut::At(end) = cutter.advance(fresh) {
                found.push(at + end);
            }
            at += fresh.len();
        }
        assert!(found.iter().all(|end| [12, 22].contains(end)) && found.contains(&22), "{block}: {found:?}");
    }
    assert_eq!(first_record_length(text, Separator::Comma, false), Some(12));
    assert_eq!(first_record_length(b"a,\"b\n", Separator::Comma, false), None);
}
