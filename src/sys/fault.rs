//! Panics and stillness on purpose, for the tests of what a bug of ours or a machine that does not get on does to the server.
//!
//! A build with the feature `fault-injection` panics at a [`point`] when the folder that `SPARK_FAULTS` names holds a file of the point's name, which it removes
//! before; and it stays there for as long as the folder holds one of the point's name with `.hold` behind it. Nobody is given such a build: in any other these calls are nothing.

/// A place at which a test may ask for a panic or a stop.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_place: &str) {}

/// A place at which a test may ask for a panic or a stop.
#[cfg(feature = "fault-injection")]
#[allow(clippy::panic, reason = "that is what it is for")]
pub fn point(place: &str) {
    static FOLDER: std::sync::OnceLock<Option<std::path::PathBuf>> = std::sync::OnceLock::new();
    let folder = FOLDER.get_or_init(|| std::env::var_os("SPARK_FAULTS").map(Into::into));
    let Some(folder) = folder else { return };
    let hold = folder.join(format!("{place}.hold"));
    while hold.exists() {
        super::sleep::nanos(5_000_000);
    }
    if std::fs::remove_file(folder.join(place)).is_ok() {
        panic!("on purpose, at '{place}'");
    }
}
