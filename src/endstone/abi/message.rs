//! `endstone::Message`: `std::variant<std::string, Translatable>`.

use std::mem::MaybeUninit;

use super::string::CxxString;
use super::vector::CxxVector;

/// A text that the client or the console translates.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Translatable {
    /// The key.
    pub text: CxxString,
    /// What is filled in.
    pub params: CxxVector<CxxString>,
}

layout! { Translatable, mirrors "endstone::Translatable", 48 bytes, in memory true {
    text @ 0 = "text_";
    params @ 24 = "params_";
} }

impl Clone for CxxVector<CxxString> {
    fn clone(&self) -> Self {
        self.as_slice().iter().cloned().collect()
    }
}

/// What a [`Message`] holds.
#[derive(Debug)]
pub enum MessageKind<'a> {
    /// Plain text.
    Text(&'a CxxString),
    /// A key with parameters.
    Translatable(&'a Translatable),
    /// A variant without a value, or an alternative that this version of Endstone does not have.
    Other,
}

const TEXT: u32 = 0;
const TRANSLATABLE: u32 = 1;

/// `endstone::Message`: the larger alternative's storage, then the index.
#[repr(C)]
pub struct Message {
    payload: MaybeUninit<Translatable>,
    index: u32,
}

layout! { Message, mirrors "std::__1::variant<std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >, endstone::Translatable>", 56 bytes, in memory true {
    payload @ 0 = "__impl_";
} }

const _: () = assert!(std::mem::offset_of!(Message, index) == 48);

impl Message {
    /// Offsets inside the variant's innermost base, where the debug information has them.
    pub const BASE_MEMBERS: &'static [super::Member] = &[
        super::Member {
            name: "__data",
            offset: std::mem::offset_of!(Message, payload),
        },
        super::Member {
            name: "__index",
            offset: std::mem::offset_of!(Message, index),
        },
    ];

    /// A message of plain text.
    pub fn text(text: &str) -> Self {
        let mut payload = MaybeUninit::<Translatable>::zeroed();
        // SAFETY: the storage is large and aligned enough for a string, which is the first alternative and starts at offset 0.
        unsafe { payload.as_mut_ptr().cast::<CxxString>().write(CxxString::new(text)) }
        Message { payload, index: TEXT }
    }

    /// What it holds.
    pub fn kind(&self) -> MessageKind<'_> {
        match self.index {
            // SAFETY: the index says that a string was constructed in the storage.
            TEXT => MessageKind::Text(unsafe { &*self.payload.as_ptr().cast::<CxxString>() }),
            // SAFETY: the index says that a Translatable was constructed in the storage.
            TRANSLATABLE => MessageKind::Translatable(unsafe { self.payload.assume_init_ref() }),
            _ => MessageKind::Other,
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        match self.index {
            // SAFETY: as in `kind`; the message owns the string and is not used again.
            TEXT => unsafe { std::ptr::drop_in_place(self.payload.as_mut_ptr().cast::<CxxString>()) },
            // SAFETY: as in `kind`; the message owns the value and is not used again.
            TRANSLATABLE => unsafe { self.payload.assume_init_drop() },
            _ => {}
        }
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kind().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_message_reads_back() {
        let message = Message::text("a text that is longer than twenty-two bytes");
        let MessageKind::Text(text) = message.kind() else {
            panic!("{message:?}")
        };
        assert_eq!(text.to_text(), "a text that is longer than twenty-two bytes");
    }
}
