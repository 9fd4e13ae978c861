//! What the owner may choose: `plugins/spark/config.toml`; and what may be shown of the game's own settings.
//!
//! The file is written with comments when there is none, and never again: it is the owner's. What cannot be understood is told with its line and what is
//! allowed; the default then holds until the next start.

mod file;
mod read;
mod server_properties;

use std::path::PathBuf;

use crate::limits;
use crate::model::WebAddress;

pub use file::{Loaded, load};
pub use read::Problem;
pub use server_properties::server_properties;

/// Where profiles are looked at unless the owner says otherwise.
const VIEWER: &str = "spark.lucko.me";
/// Where profiles are uploaded to unless the owner says otherwise.
const BYTEBIN: &str = "spark-usercontent.lucko.me";
/// Where Linux distributions keep separate debug files.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// The settings of this run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The page that shows profiles.
    pub viewer: WebAddress,
    /// The server that takes uploads.
    pub bytebin: WebAddress,
    /// Results for somebody who has left go to the console alone.
    pub disable_response_broadcast: bool,
    /// Follow Python functions.
    pub python_attribution: bool,
    /// Where separate debug files are looked for.
    pub debug_folder: PathBuf,
    /// Most bytes of saved profiles that are kept.
    pub profile_folder_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            viewer: WebAddress::of_host(VIEWER),
            bytebin: WebAddress::of_host(BYTEBIN),
            disable_response_broadcast: false,
            python_attribution: true,
            debug_folder: PathBuf::from(DEBUG_FOLDER),
            profile_folder_bytes: limits::PROFILE_FOLDER_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_addresses_are_addresses() {
        let settings = Settings::default();
        for address in [settings.viewer, settings.bytebin] {
            assert_eq!(WebAddress::parse(&address.to_string()), Ok(address));
        }
    }
}
