//! From a frozen snapshot to the file that the spark viewer opens.

mod encode;
mod frames;
mod glue;
mod layout;
mod metadata;
pub mod pb;
mod save;
mod shorten;
mod sources;
#[cfg(test)]
mod test_support;

pub use encode::encode;
pub use frames::NativeNames;
pub use metadata::{Creator, Grouping, ProfileMetadata, ThreadSelection};
pub use save::{save, write};
pub use sources::Source;
