//! The files of one journal while it is written.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use super::folder::{RecoveryFolder, SessionId, segment_name};
use super::format::{HEADER_BYTES, Header};
use crate::limits;
use crate::sys::PrivateDirError;

/// Why nothing more is written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// A file could not be made or written to.
    #[error(transparent)]
    File(#[from] PrivateDirError),
    /// More segments than a journal can number.
    #[error("the journal has too many segments")]
    TooMany,
}

/// The newest segment, and which ones there are.
#[derive(Debug)]
pub(super) struct Segments {
    folder: Arc<RecoveryFolder>,
    session: SessionId,
    file: File,
    sequence: u32,
    bytes: u64,
    /// Sequence and size of those before, oldest first.
    before: VecDeque<(u32, u64)>,
}

impl Segments {
    /// Begins the first segment.
    pub(super) fn begin(folder: Arc<RecoveryFolder>, session: SessionId) -> Result<Self, WriteError> {
        let file = create(&folder, session, 1)?;
        Ok(Segments {
            folder,
            session,
            file,
            sequence: 1,
            bytes: HEADER_BYTES as u64,
            before: VecDeque::new(),
        })
    }

    /// Whether the segment is as long as one is to be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= limits::JOURNAL_SEGMENT_BYTES
    }

    /// Writes whole records.
    pub(super) fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if let Err(error) = self.file.write_all(records) {
            return Err(failed(&self.folder, self.session, self.sequence, error));
        }
        self.bytes += records.len() as u64;
        Ok(())
    }

    /// Ends the segment and begins the next. Old ones go when all together would take more room than they may.
    pub(super) fn rotate(&mut self) -> Result<(), WriteError> {
        self.sync();
        let sequence = self.sequence.checked_add(1).ok_or(WriteError::TooMany)?;
        self.file = create(&self.folder, self.session, sequence)?;
        self.before.push_back((self.sequence, self.bytes));
        self.sequence = sequence;
        self.bytes = HEADER_BYTES as u64;
        let mut all: u64 = self.before.iter().map(|(_, bytes)| bytes).sum();
        while all + limits::JOURNAL_SEGMENT_BYTES > limits::JOURNAL_BYTES
            && let Some((sequence, bytes)) = self.before.pop_front()
        {
            // What cannot be removed takes room, and nothing else.
            let _ = self.folder.dir().remove(&segment_name(self.session, sequence));
            all -= bytes;
        }
        Ok(())
    }

    /// Puts the segment onto the disk itself. A disk that cannot has a journal that survives the process, which is what it is for.
    pub(super) fn sync(&self) {
        let _ = self.file.sync_data();
    }
}

fn create(folder: &RecoveryFolder, session: SessionId, sequence: u32) -> Result<File, WriteError> {
    let mut file = folder.dir().create(&segment_name(session, sequence))?;
    let header = Header { session, sequence };
    match file.write_all(&header.encode()) {
        Ok(()) => Ok(file),
        Err(error) => Err(failed(folder, session, sequence, error)),
    }
}

fn failed(folder: &RecoveryFolder, session: SessionId, sequence: u32, error: io::Error) -> WriteError {
    let path = folder.dir().path().join(segment_name(session, sequence));
    WriteError::File(PrivateDirError::new(&path, error))
}
