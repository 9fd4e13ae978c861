//! A profile that is not on disk yet.

use super::control::Destination;
use crate::export::Profile;
use crate::journal::Journal;
use crate::model::{PastKind, WallMillis};

/// A finished profile. It is dropped only once it has been written, replaced by a newer one that could not be written either, or thrown away on request.
#[derive(Debug)]
pub(super) struct Unsaved {
    pub(super) profile: Box<Profile>,
    /// Whether a file was asked for. It then never leaves the machine unless its owner says `upload`, however often it could not be written.
    pub(super) for_file: bool,
    /// When the session ended; the file is named after it.
    pub(super) ended: WallMillis,
    /// How long the session was.
    pub(super) seconds: u64,
    /// Who started it.
    pub(super) user: String,
    /// Samples with a stack.
    pub(super) samples: u64,
    /// Of a session, or of the background.
    pub(super) kind: PastKind,
    /// Frames that were folded because the profile was too large.
    pub(super) folded: u64,
    /// Whether there was time to look all names up.
    pub(super) is_named: bool,
    /// What is kept on disk of its session until it is safe. Given up with the profile it stays, for the next start.
    pub(super) journal: Option<Box<Journal>>,
}

impl Unsaved {
    /// It is safe, or nobody wants it.
    pub(super) fn discard_journal(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.discard();
        }
    }

    /// Gives it another comment.
    pub(super) fn comment(&mut self, text: &str) {
        self.profile.set_comment(text);
    }

    /// Whether it is to be uploaded when `to` is asked for.
    pub(super) fn is_to_upload(&self, to: Destination) -> bool {
        match to {
            Destination::AsStarted => !self.for_file,
            Destination::File => false,
            Destination::Server => true,
        }
    }
}
