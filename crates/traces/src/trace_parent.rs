//! The span of an application, as it tells it to the servers that it calls.

/// The span that caused an operation. Its text is `00-` and the trace's id, the span's id and the flags in hexadecimal
/// digits.
/// Source: W3C, "Trace Context", section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span.
    pub span_id: [u8; 8],
    /// The flags of the trace context.
    pub flags: u8,
}

/// Number of characters in the text.
const LENGTH: usize = 55;

impl TraceParent {
    /// Reads a `traceparent`. Texts of later versions may be longer, and begin as this version's does. `None` if the text is
    /// not one; as W3C asks, upper-case digits and ids of zeros are refused.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_later = bytes.get(LENGTH) == Some(&b'-') && !text.starts_with("00");
        if bytes.len() != LENGTH && !is_later {
            return None;
        }
        let are_apart = [2, 35, 52].iter().all(|position| bytes[*position] == b'-');
        let [version]: [u8; 1] = digits(&bytes[..2])?;
        let trace_id: [u8; 16] = digits(&bytes[3..35])?;
        let span_id: [u8; 8] = digits(&bytes[36..52])?;
        let [flags]: [u8; 1] = digits(&bytes[53..LENGTH])?;
        let has_ids = trace_id != [0; 16] && span_id != [0; 8];
        (are_apart && version != 0xff && has_ids).then_some(Self { trace_id, span_id, flags })
    }
}

/// Reads two digits for each byte.
fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |character: u8| match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read() {
        let parent = TraceParent::parse(EXAMPLE).expect("valid");
        assert_eq!(u128::from_be_bytes(parent.trace_id), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((u64::from_be_bytes(parent.span_id), parent.flags), (0x00f0_67aa_0ba9_02b7, 1));
        let later = format!("cc{}-what-comes-later", &EXAMPLE[2..]);
        assert_eq!(TraceParent::parse(&later), Some(parent));
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "why",
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-more"),
            &format!("ff{}", &EXAMPLE[2..]),
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-0",
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
