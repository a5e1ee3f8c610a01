//! The server's answers in XML. Elements of one name are never nested in each other there.

/// The text in the first element of that name.
pub(crate) fn text(xml: &str, name: &str) -> Option<String> {
    elements(xml, name).next().map(unescaped)
}

/// The contents of all elements of that name.
pub(crate) fn elements<'x>(xml: &'x str, name: &str) -> impl Iterator<Item = &'x str> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        loop {
            let behind = &rest[rest.find(&open)? + open.len()..];
            let (attributes, inside) = behind.split_once('>')?;
            rest = inside;
            // Another name may begin with this one.
            if !(attributes.is_empty() || attributes.starts_with([' ', '/'])) {
                continue;
            }
            if attributes.ends_with('/') {
                return Some("");
            }
            let (content, behind) = inside.split_once(close.as_str())?;
            rest = behind;
            return Some(content);
        }
    })
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('&') {
        plain.push_str(before);
        let Some((name, behind)) = behind.split_once(';') else {
            plain.push('&');
            rest = behind;
            continue;
        };
        let number = name.strip_prefix('#');
        let code = number.and_then(|number| match number.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        });
        match (name, code.and_then(char::from_u32)) {
            ("amp", _) => plain.push('&'),
            ("lt", _) => plain.push('<'),
            ("gt", _) => plain.push('>'),
            ("quot", _) => plain.push('"'),
            ("apos", _) => plain.push('\''),
            (_, Some(character)) => plain.push(character),
            _ => plain.push('?'),
        }
        rest = behind;
    }
    plain + rest
}

/// Text as the content of an element.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_their_texts_are_found() {
        let xml = r#"<?xml version="1.0"?><R xmlns="a"><KeyCount>2</KeyCount><C><Key>a&amp;b&#39;&#x41;</Key></C><C><Key/></C><C a="1"><Key>c</Key></C></R>"#;
        let keys: Vec<_> = elements(xml, "C").map(|content| text(content, "Key")).collect();
        assert_eq!(keys, [Some("a&b'A".to_owned()), Some(String::new()), Some("c".to_owned())]);
        assert_eq!(text(xml, "KeyCount").as_deref(), Some("2"));
        assert_eq!(text(xml, "Absent"), None);
        for cut in 0..xml.len() {
            assert!(elements(&xml[..cut], "C").count() <= 3);
        }
        assert_eq!(unescaped(&escaped("<a&b>")), "<a&b>");
        assert_eq!(unescaped("a&b"), "a&b");
    }
}
