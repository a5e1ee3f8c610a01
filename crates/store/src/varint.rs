//! Little-endian base-128 integers.

/// Appends one integer, of at most ten bytes.
pub fn put(buffer: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        buffer.push(number as u8 | 0x80);
        number >>= 7;
    }
    buffer.push(number as u8);
}

/// Writes one integer into `bytes` from `at` on; returns the offset after it.
pub fn put_at(bytes: &mut [u8], mut at: usize, mut number: u64) -> usize {
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    at + 1
}

/// Takes one integer from the front; `None` if it is cut or longer than 64 bits.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    match input.split_first()? {
        (&byte @ ..0x80, rest) => {
            *input = rest;
            Some(u64::from(byte))
        }
        _ => take_long(input),
    }
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a length and the bytes.
pub fn put_bytes(buffer: &mut Vec<u8>, bytes: &[u8]) {
    put(buffer, bytes.len() as u64);
    buffer.extend_from_slice(bytes);
}

/// Takes bytes appended by [`put_bytes`] from the front; `None` if they are cut.
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn round_trips_at_the_edges() {
        for number in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut buffer = Vec::new();
            super::put(&mut buffer, number);
            let mut input = buffer.as_slice();
            assert_eq!(super::take(&mut input), Some(number));
            assert!(input.is_empty());
            assert_eq!(super::take(&mut &buffer[..buffer.len() - 1]), None);
        }
    }
}
