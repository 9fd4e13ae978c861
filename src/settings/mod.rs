//! What the owner may choose: `plugins/spark/config.toml`; and what may be shown of the game's own settings.
//!
//! The file is written with comments when there is none, and never again: it is the owner's. What cannot be understood is told with its line and what is
//! allowed; the default then holds until the next start.

mod file;
mod keys;
mod read;
mod server_properties;
mod value;

pub use file::{Loaded, load};
pub use keys::Settings;
pub use read::Problem;
pub use server_properties::server_properties;
