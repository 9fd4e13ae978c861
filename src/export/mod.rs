//! From a frozen snapshot to the file that the spark viewer opens.

mod encode;
mod fold;
mod folder;
mod frames;
mod glue;
mod health;
mod layout;
mod metadata;
mod ordered;
pub mod pb;
mod profile;
mod regions;
mod save;
mod server;
mod shorten;
mod sources;
mod stalls;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod viewer_rules;
mod write;

pub use encode::encode;
pub use fold::fold;
pub use folder::{Kind, make_room};
pub use frames::NativeNames;
pub use health::{HealthReport, compress_health, save_health};
pub use metadata::{Creator, ProfileMetadata, ThreadSelection};
pub use profile::Profile;
pub use save::{compress, save};
pub use server::ServerReport;
pub use sources::Source;
pub use stalls::{ShownStall, StallReport};
pub use write::write;
