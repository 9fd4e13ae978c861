//! From a frozen snapshot to the file that the spark viewer opens.

mod encode;
mod fold;
mod folder;
mod frames;
mod glue;
mod layout;
mod metadata;
mod ordered;
pub mod pb;
mod profile;
mod save;
mod shorten;
mod sources;
#[cfg(test)]
mod test_support;
mod write;

pub use encode::encode;
pub use fold::fold;
pub use folder::{Kind, make_room};
pub use frames::NativeNames;
pub use metadata::{Creator, ProfileMetadata, ThreadSelection};
pub use profile::Profile;
pub use save::{compress, save};
pub use sources::Source;
pub use write::write;
