//! `plugins/spark/recovery`: who may use it, and which journals are in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use parking_lot::Mutex;

use super::format::{Header, Kind, record};
use crate::limits;
use crate::model::WallMillis;
use crate::sys::{FileEntry, LockError, PrivateDir, PrivateDirError, RecordLock};

/// The file that the lock is on.
const LOCK: &str = "lock";

/// Says which journal is being read, and how often that was begun.
const ATTEMPTS: &str = "attempts";

/// How names of segments end.
const SEGMENT: &str = ".journal";

/// How names of segments end that could not be read.
const ASIDE: &str = ".unreadable";

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be made or opened.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
    /// It is locked, or cannot be.
    #[error("plugins/spark/recovery cannot be used: {0}")]
    Lock(#[from] LockError),
}

/// A session, among those whose journals are in the folder. Later ones have higher numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionId(u64);

impl SessionId {
    /// The session with this number, which names of files give in hexadecimal.
    pub const fn new(number: u64) -> Self {
        SessionId(number)
    }

    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// A journal in the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Whose.
    pub session: SessionId,
    /// Sequences of its segments, ascending.
    pub segments: Vec<u32>,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// The folder, kept from other servers for as long as this lives.
#[derive(Debug)]
pub struct RecoveryFolder {
    dir: PrivateDir,
    _lock: RecordLock,
    /// Journals of sessions of this process.
    own: Mutex<Vec<SessionId>>,
}

impl RecoveryFolder {
    /// Opens the folder, making it if there is none, and keeps others out.
    ///
    /// # Errors
    /// It cannot be had, or somebody else has it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let dir = PrivateDir::open(path)?;
        let lock = RecordLock::take(&dir, LOCK)?;
        Ok(RecoveryFolder {
            dir,
            _lock: lock,
            own: Mutex::default(),
        })
    }

    pub(super) fn dir(&self) -> &PrivateDir {
        &self.dir
    }

    /// A new session that began now. Ids grow, also when the clock does not.
    pub(super) fn claim(&self, started: WallMillis) -> SessionId {
        let mut own = self.own.lock();
        let taken = self
            .journals()
            .into_iter()
            .map(|found| found.session)
            .chain(own.iter().copied());
        let next = taken.max().map_or(0, |last| last.0.saturating_add(1));
        let id = SessionId(next.max(u64::try_from(started.0).unwrap_or(0)));
        own.push(id);
        id
    }

    /// The session's journal is no longer ours.
    pub(super) fn release(&self, session: SessionId) {
        self.own.lock().retain(|own| *own != session);
    }

    /// The journals of sessions that are not this process's own, oldest first.
    pub fn found(&self) -> Vec<Found> {
        // Held while the folder is read: a session that begins just now would be found and not known for our own.
        let own = self.own.lock();
        let mut found = self.journals();
        found.retain(|found| !own.contains(&found.session));
        found
    }

    fn journals(&self) -> Vec<Found> {
        let mut found: BTreeMap<SessionId, Found> = BTreeMap::new();
        for file in self.dir.files().unwrap_or_default() {
            let Some((session, sequence)) = parse_name(&file.name) else {
                continue;
            };
            let of_session = found.entry(session).or_insert_with(|| Found {
                session,
                segments: Vec::new(),
                bytes: 0,
            });
            of_session.segments.push(sequence);
            of_session.bytes = of_session.bytes.saturating_add(file.bytes);
        }
        let mut found: Vec<Found> = found.into_values().collect();
        found.iter_mut().for_each(|found| found.segments.sort_unstable());
        found
    }

    /// Opens a segment to be read.
    ///
    /// # Errors
    /// It is no regular file or cannot be opened.
    pub fn open_segment(&self, session: SessionId, sequence: u32) -> Result<File, PrivateDirError> {
        self.dir.open_file(&segment_name(session, sequence))
    }

    /// Removes a journal. It is ended first, with a last segment that goes last: whatever happens in between, nobody takes it for that of a crash.
    pub fn discard(&self, session: SessionId) {
        let mut segments = self.segments(session);
        if let Some(end) = segments.last().and_then(|newest| newest.checked_add(1)) {
            // On a full disk it is removed without. What cannot be removed either is read at the next start.
            if self.write_end(session, end).is_ok() {
                segments.push(end);
            }
        }
        for sequence in segments {
            let _ = self.dir.remove(&segment_name(session, sequence));
        }
        self.release(session);
    }

    fn write_end(&self, session: SessionId, sequence: u32) -> Result<(), PrivateDirError> {
        let name = segment_name(session, sequence);
        let mut bytes = Header { session, sequence }.encode().to_vec();
        record(&mut bytes, Kind::End, |_| {});
        let mut file = self.dir.create(&name)?;
        file.write_all(&bytes)
            .map_err(|error| PrivateDirError::new(&self.dir.path().join(name), error))
    }

    fn segments(&self, session: SessionId) -> Vec<u32> {
        let found = self.journals().into_iter().find(|found| found.session == session);
        found.map(|found| found.segments).unwrap_or_default()
    }

    /// Keeps a segment under a name under which nobody reads it, for its owner to look at. Gives the names of such files that had to go for it: the largest, so that a
    /// large journal does not push out what small ones left; the older of two that are alike.
    #[must_use]
    pub fn set_aside(&self, session: SessionId, sequence: u32) -> Vec<String> {
        let name = segment_name(session, sequence);
        let aside = Self::name_aside(session, sequence);
        if self.dir.rename(&name, &aside).is_err() {
            let _ = self.dir.remove(&name);
        }
        let is_aside = |file: &FileEntry| file.name.ends_with(ASIDE);
        let mut kept: Vec<FileEntry> = self
            .dir
            .files()
            .unwrap_or_default()
            .into_iter()
            .filter(is_aside)
            .collect();
        // Those that go first stand last.
        kept.sort_by(|a, b| (a.bytes, b.modified_seconds, &b.name).cmp(&(b.bytes, a.modified_seconds, &a.name)));
        let mut bytes: u64 = kept.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let mut removed = Vec::new();
        while kept.len() > limits::UNREADABLE_SEGMENTS || bytes > limits::UNREADABLE_BYTES {
            let Some(file) = kept.pop() else { break };
            bytes = bytes.saturating_sub(file.bytes);
            if self.dir.remove(&file.name).is_ok() {
                removed.push(file.name);
            }
        }
        removed
    }

    /// The name under which [`RecoveryFolder::set_aside`] keeps a segment.
    pub fn name_aside(session: SessionId, sequence: u32) -> String {
        segment_name(session, sequence).replace(SEGMENT, ASIDE)
    }

    /// Says that a journal is about to be read, and gives how often that was said before without an end.
    pub fn begin_attempt(&self, session: SessionId) -> u32 {
        let text = self.dir.read(ATTEMPTS, 100).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut words = text.split_whitespace();
        let same = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()) == Some(session.0);
        let before = words
            .next()
            .and_then(|word| word.parse().ok())
            .filter(|_| same)
            .unwrap_or(0_u32);
        let line = format!("{:016x} {}\n", session.0, before.saturating_add(1));
        // Without it a journal that crashes its reader is read at every start.
        let _ = self.dir.replace(ATTEMPTS, |out| out.write_all(line.as_bytes()));
        before
    }

    /// It was read, and we live.
    pub fn end_attempt(&self) {
        let _ = self.dir.remove(ATTEMPTS);
    }
}

/// `0000018f3c2a1b00-000001.journal`
pub(super) fn segment_name(session: SessionId, sequence: u32) -> String {
    format!("{:016x}-{sequence:06}{SEGMENT}", session.0)
}

fn parse_name(name: &str) -> Option<(SessionId, u32)> {
    let (session, sequence) = name.strip_suffix(SEGMENT)?.split_once('-')?;
    let parsed = (
        SessionId(u64::from_str_radix(session, 16).ok()?),
        sequence.parse().ok()?,
    );
    // Only as we write it: no sign, no other case, no other length.
    (segment_name(parsed.0, parsed.1) == name).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn journals_are_found_by_their_names_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        for name in [
            "00000000000000ff-000002.journal",
            "00000000000000ff-000001.journal",
            "000000000000000a-1234567.journal",
            "000000000000000A-000001.journal",
            "000000000000000a-+00001.journal",
            "000000000000000a-00001.journal",
            "0a-000001.journal",
            "000000000000000b-000001.unreadable",
            "notes.txt",
        ] {
            std::fs::write(root.path().join(name), "12345").unwrap();
        }
        std::fs::create_dir(root.path().join("000000000000000c-000001.journal")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("000000000000000d-000001.journal")).unwrap();
        let found = folder.found();
        assert_eq!(
            found,
            [
                Found {
                    session: SessionId(0xa),
                    segments: vec![1_234_567],
                    bytes: 5
                },
                Found {
                    session: SessionId(0xff),
                    segments: vec![1, 2],
                    bytes: 10
                }
            ]
        );
    }

    #[test]
    fn ids_grow_and_own_sessions_are_not_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(segment_name(SessionId(500), 1)), "").unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        let first = folder.claim(WallMillis(100));
        assert_eq!(first, SessionId(501));
        assert_eq!(folder.claim(WallMillis(-1)), SessionId(502));
        assert_eq!(folder.claim(WallMillis(9_000)), SessionId(9_000));
        std::fs::write(root.path().join(segment_name(first, 1)), "").unwrap();
        assert_eq!(folder.found().len(), 1);
        folder.release(first);
        assert_eq!(folder.found().len(), 2);
        folder.discard(first);
        folder.discard(SessionId(500));
        assert_eq!(names(root.path()), [LOCK]);
    }

    #[test]
    fn what_is_set_aside_is_kept_but_not_without_end() {
        let root = tempfile::tempdir().unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        let count = limits::UNREADABLE_SEGMENTS as u32 + 3;
        for sequence in 1..=count {
            std::fs::write(root.path().join(segment_name(SessionId(1), sequence)), "x").unwrap();
            let removed = folder.set_aside(SessionId(1), sequence);
            assert_eq!(
                removed.len(),
                usize::from(sequence as usize > limits::UNREADABLE_SEGMENTS),
                "{removed:?}"
            );
        }
        let left = names(root.path());
        assert_eq!(left.len(), limits::UNREADABLE_SEGMENTS + 1, "{left:?}");
        assert!(left.contains(&segment_name(SessionId(1), count).replace(SEGMENT, ASIDE)));
        assert!(folder.found().is_empty());
    }

    #[test]
    fn large_journals_do_not_push_out_what_small_ones_left_and_what_goes_is_said() {
        let root = tempfile::tempdir().unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        let aside = |session: u64, sequence: u32, bytes: u64| {
            let name = segment_name(SessionId(session), sequence);
            let file = File::create(root.path().join(name)).unwrap();
            // Holes take no room on the disk.
            file.set_len(bytes).unwrap();
            folder.set_aside(SessionId(session), sequence)
        };
        for sequence in 1..=3 {
            assert!(aside(1, sequence, 100).is_empty());
        }
        let whole = limits::JOURNAL_BYTES / limits::JOURNAL_SEGMENT_BYTES;
        let mut removed = Vec::new();
        for session in 2..=4 {
            for sequence in 1..=whole as u32 {
                removed.extend(aside(session, sequence, limits::JOURNAL_SEGMENT_BYTES));
            }
        }
        let left = names(root.path());
        for sequence in 1..=3 {
            let small = RecoveryFolder::name_aside(SessionId(1), sequence);
            assert!(left.contains(&small), "{left:?}");
        }
        assert!(left.len() <= limits::UNREADABLE_SEGMENTS + 1, "{left:?}");
        assert_eq!(left.len() - 1 + removed.len(), 3 + 3 * whole as usize);
        assert!(removed.iter().all(|name| !left.contains(name)), "{removed:?}");
    }

    #[test]
    fn attempts_are_counted_for_each_journal() {
        let root = tempfile::tempdir().unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        assert_eq!(folder.begin_attempt(SessionId(7)), 0);
        assert_eq!(folder.begin_attempt(SessionId(7)), 1);
        assert_eq!(folder.begin_attempt(SessionId(8)), 0);
        folder.end_attempt();
        assert_eq!(folder.begin_attempt(SessionId(8)), 0);
        std::fs::write(root.path().join(ATTEMPTS), "\u{0}garbage 99999999999999999999").unwrap();
        assert_eq!(folder.begin_attempt(SessionId(8)), 0);
    }

    #[test]
    fn a_folder_is_for_one_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let folder = RecoveryFolder::open(root.path()).unwrap();
        let error = RecoveryFolder::open(root.path()).unwrap_err();
        assert!(matches!(error, OpenError::Lock(LockError::ThisProcess)), "{error}");
        drop(folder);
        RecoveryFolder::open(root.path()).unwrap();
    }
}
