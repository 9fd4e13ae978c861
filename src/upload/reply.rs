//! What a server answers to an upload.

use crate::limits;

/// The name under which a profile is found. Letters and digits only, so that it can stand in a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key(String);

impl Key {
    /// A key, if this is one.
    pub fn new(text: &str) -> Option<Self> {
        let is_one =
            limits::UPLOAD_KEY_CHARS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_one.then(|| Key(text.to_owned()))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The key in a reply: bytebin gives it as `Location`, and again in the body as `{"key":"..."}`.
pub(super) fn key(location: Option<&str>, body: &[u8]) -> Option<Key> {
    location.and_then(Key::new).or_else(|| {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        Key::new(body.get("key")?.as_str()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_in_the_header_or_in_the_body() {
        let found = |location, body: &str| key(location, body.as_bytes()).map(|key| key.as_str().to_owned());
        assert_eq!(found(Some("abc123XYZ"), "").as_deref(), Some("abc123XYZ"));
        assert_eq!(found(None, r#"{"key":"abcd"}"#).as_deref(), Some("abcd"));
        assert_eq!(found(Some("/abc/def"), r#"{"key":"abcd"}"#).as_deref(), Some("abcd"));
        for (location, body) in [
            (None, ""),
            (Some("abc"), ""),
            (Some("a/../b"), "{}"),
            (Some("https://evil.example/abcd"), "[]"),
            (None, "<html>"),
            (None, r#"{"key":7}"#),
            (None, r#"{"key":"§cabcd"}"#),
            (None, r#"{"key":"abcd efgh"}"#),
            (None, r#"{"key":"ａｂｃｄ"}"#),
        ] {
            assert_eq!(found(location, body), None, "{location:?} {body}");
        }
        assert!(Key::new(&"x".repeat(64)).is_some());
        assert!(Key::new(&"x".repeat(65)).is_none());
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        assert_eq!(key(None, "[".repeat(60_000).as_bytes()), None);
    }
}
