//! Which build of the profiler this is, for those who look at a profile later.

use std::sync::OnceLock;

/// The profiler's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that a release was built from, by the build's environment; other builds have none.
pub const COMMIT: Option<&str> = option_env!("SPARK_COMMIT");

static BUILD_ID: OnceLock<String> = OnceLock::new();

/// Takes notice of the build id that the linker gave the file, in hexadecimal digits. The first one stays: it is that of the code in memory.
pub fn set_build_id(id: String) {
    let _ = BUILD_ID.set(id);
}

/// The build id in hexadecimal digits, if it is known.
pub fn build_id() -> Option<&'static str> {
    BUILD_ID.get().map(String::as_str)
}
