//! A profile that is not on disk yet.

use crate::export::Profile;
use crate::model::WallMillis;

/// A finished profile. It is dropped only once it has been written, replaced by a newer one that could not be written either, or thrown away on request.
#[derive(Debug)]
pub(super) struct Unsaved {
    pub(super) profile: Box<Profile>,
    /// When the session ended; the file is named after it.
    pub(super) ended: WallMillis,
    /// How long the session was.
    pub(super) seconds: u64,
    /// Who started it.
    pub(super) user: String,
    /// Samples with a stack.
    pub(super) samples: u64,
    /// Frames that were folded because the profile was too large.
    pub(super) folded: u64,
}
