//! `std::string`.

use std::borrow::Cow;
use std::ffi::c_void;

use super::alloc::{allocate, release};

/// Longest text that is stored inside the object.
const SHORT_CAPACITY: usize = 22;

/// `std::string` of libc++ in its default layout: short is `{length << 1, up to 22 bytes, 0}`, long is
/// `{allocation size | 1, length, pointer}`. Neither points into itself, so values may be moved.
#[repr(C)]
pub struct CxxString {
    first: usize,
    size: usize,
    data: *mut u8,
}

layout! { CxxString, mirrors "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >", 24 bytes, in memory true {
    first @ 0 = "__rep_";
} }

impl CxxString {
    /// A copy of `text`.
    pub fn new(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    /// A copy of `bytes`; C++ strings may hold any.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut string = CxxString {
            first: 0,
            size: 0,
            data: std::ptr::null_mut(),
        };
        if bytes.len() <= SHORT_CAPACITY {
            let inline = (&raw mut string).cast::<u8>();
            // SAFETY: the object is 24 zeroed bytes: one for the length, at most 22 for the text, and the terminator stays 0.
            unsafe {
                inline.write((bytes.len() as u8) << 1);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), inline.add(1), bytes.len());
            }
            return string;
        }
        // libc++ rounds allocations up to 16 and frees with exactly the size that the object names.
        let allocation = (bytes.len() + 1).next_multiple_of(16);
        let data = allocate(allocation).cast::<u8>();
        // SAFETY: the block holds the text and its terminator.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
            data.add(bytes.len()).write(0);
        }
        CxxString {
            first: allocation | 1,
            size: bytes.len(),
            data,
        }
    }

    fn is_long(&self) -> bool {
        self.first & 1 == 1
    }

    /// The contents.
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_long() {
            // SAFETY: a long string's pointer and size describe its own block, which lives as long as the object.
            unsafe { std::slice::from_raw_parts(self.data, self.size) }
        } else {
            let inline = std::ptr::from_ref(self).cast::<u8>();
            let length = (self.first as u8 >> 1) as usize;
            // SAFETY: a short string's text follows its length byte inside the object; the length is clamped to what fits there.
            unsafe { std::slice::from_raw_parts(inline.add(1), length.min(SHORT_CAPACITY)) }
        }
    }

    /// The contents as text; bytes that are not UTF-8 become replacement characters.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl Clone for CxxString {
    fn clone(&self) -> Self {
        Self::from_bytes(self.as_bytes())
    }
}

impl Drop for CxxString {
    fn drop(&mut self) {
        if self.is_long() {
            // SAFETY: the object owns its block.
            unsafe { release(self.data.cast::<c_void>()) }
        }
    }
}

impl std::fmt::Debug for CxxString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_around_the_short_limit_reads_back() {
        for length in 0..=70 {
            let text = "x".repeat(length);
            let string = CxxString::new(&text);
            assert_eq!(string.to_text(), text);
            assert_eq!(string.clone().to_text(), text);
            assert_eq!(string.is_long(), length > 22, "length {length}");
        }
    }

    #[test]
    fn a_long_string_names_exactly_the_size_it_allocated() {
        let string = CxxString::new(&"x".repeat(32));
        assert_eq!(string.first, 48 | 1, "33 bytes rounded up to 48");
        assert_eq!(string.size, 32);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept_and_shown_replaced() {
        let string = CxxString::from_bytes(b"a\xffb");
        assert_eq!(string.as_bytes(), b"a\xffb");
        assert_eq!(string.to_text(), "a\u{fffd}b");
    }
}
