//! The wall between Rust panics and C++.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// Runs `work`; a panic becomes its message. `work` must not call the host: a C++ exception inside `catch_unwind` ends the process.
pub(super) fn pure<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What `work` shares with the rest of the plugin is behind locks that do not poison and stay consistent at every step.
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(pure(|| 7), Ok(7));
        assert_eq!(pure(|| -> () { panic!("fixed") }), Err("fixed".to_owned()));
        assert_eq!(pure(|| -> () { panic!("made {}", 1) }), Err("made 1".to_owned()));
        assert_eq!(
            pure(|| -> () { std::panic::panic_any(5) }),
            Err("no message".to_owned())
        );
    }
}
