//! HTML that cannot be broken out of: whatever is not written in this program goes through [`Markup::text`] or stands
//! as an attribute's value, and both escape.

/// Elements that have no end tag.
const VOID: &[&str] = &["meta", "br", "input"];

/// HTML under construction.
#[derive(Default)]
pub(super) struct Markup(String);

/// Names and values.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends an element that contains other elements.
    pub(super) fn within(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        fill: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            escape(value, &mut self.0);
            self.0.push('"');
        }
        self.0.push('>');
        if !VOID.contains(&tag) {
            fill(self);
            self.0.push_str("</");
            self.0.push_str(tag);
            self.0.push('>');
        }
        self
    }

    /// Appends an element with a text, which may be empty.
    pub(super) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) -> &mut Self {
        self.within(tag, attributes, |inner| _ = inner.text(text))
    }

    /// Appends an element of one class with text in it.
    pub(super) fn classed(&mut self, tag: &'static str, class: &str, text: &str) -> &mut Self {
        self.element(tag, &[("class", class)], text)
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        escape(text, &mut self.0);
        self
    }

    pub(super) fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// A script or style sheet of this program, or JSON: element contents that HTML does not unescape.
    ///
    /// # Panics
    /// If `contents` has `</`, which could end the element.
    pub(super) fn raw_element(&mut self, tag: &'static str, attributes: Attributes<'_>, contents: &str) -> &mut Self {
        assert!(!contents.contains("</"), "it would end its element");
        self.within(tag, attributes, |inner| inner.0.push_str(contents))
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // HTML does not allow such a character.
            character if character.is_control() && !matches!(character, '\n' | '\t') => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        let mut markup = Markup::new();
        markup.within("p", &[("title", "\"><script>")], |p| {
            p.text("a < b & 'c'\u{1b}").element("br", &[], "");
        });
        assert_eq!(markup.finish(), "<p title=\"&quot;&gt;&lt;script&gt;\">a &lt; b &amp; &#39;c&#39;\u{fffd}<br></p>");
    }

    #[test]
    #[should_panic(expected = "would end its element")]
    fn a_script_cannot_end_its_element() {
        Markup::new().raw_element("script", &[], "'</script>'");
    }
}
