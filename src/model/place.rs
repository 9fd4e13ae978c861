//! Where a file is, as it may be said in chat.

use std::path::{Path, PathBuf};

use super::clean_text;
use crate::limits;

/// The path from the server's `plugins` folder on: what stands before it is nobody's business. Without such a folder, the last part alone.
pub fn shown_path(path: &Path) -> String {
    let parts: Vec<_> = path.components().collect();
    let shown: PathBuf = match parts.iter().rposition(|part| part.as_os_str() == "plugins") {
        Some(start) => parts.iter().skip(start).collect(),
        None => path.file_name().map(PathBuf::from).unwrap_or_default(),
    };
    clean_text(&shown.to_string_lossy(), limits::COMMENT_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_begin_at_the_plugins_folder() {
        for (path, shown) in [
            (
                "/home/me/server/plugins/spark/profiles/a.sparkprofile",
                "plugins/spark/profiles/a.sparkprofile",
            ),
            ("/home/plugins/x/plugins/spark/a", "plugins/spark/a"),
            ("/home/me/a.sparkprofile", "a.sparkprofile"),
            ("/home/me/plugins/§cred\n", "plugins/red"),
        ] {
            assert_eq!(shown_path(Path::new(path)), shown);
        }
    }
}
