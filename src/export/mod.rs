//! From a frozen snapshot to the file that the spark viewer opens.

mod encode;
mod fold;
mod folder;
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
pub use fold::fold;
pub use folder::{Kind, make_room};
pub use frames::NativeNames;
pub use metadata::{Creator, ProfileMetadata, ThreadSelection};
pub use save::{compress, save, write};
pub use sources::Source;
