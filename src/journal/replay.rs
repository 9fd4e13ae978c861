//! Reading journals. Nothing in a file is believed: it may be damaged, cut short, of another version, or made to do harm.
//!
//! A segment is read record by record. One with a wrong check sum is passed over by the length that it gives, and the next one shows whether that was right: two wrong
//! ones in a row end the segment. Memory is bounded by what is allowed of each kind of thing, whatever a file says.

use std::collections::HashSet;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::folder::SessionId;
use super::format::{HEADER_BYTES, Header, Kind, Opening};
use super::head::{SessionHead, text};
use super::tables::{Frames, Threads};
use super::wire::Cursor;
use crate::limits;
use crate::model::{BuildId, Module, ModuleId, MonotonicNanos, Stall, ThreadKey, Tid};

pub use super::tables::Frame;

/// What a journal tells, in the order of its files.
#[derive(Clone, PartialEq, Debug)]
pub enum Event<'a> {
    /// The session. Every segment repeats it.
    Head(&'a SessionHead),
    /// A module. Every segment repeats those before.
    Module(Module),
    /// A thread and its name.
    Thread(ThreadKey, String),
    /// It has ended; no sample of it comes any more.
    ThreadEnded(ThreadKey, String),
    /// A sample, or several that repeat the one before.
    Sample(Sampled<'a>),
    /// A tick: when it was, and how many milliseconds the one before took.
    Tick(MonotonicNanos, f32),
    /// A time in which the server did not tick, when it has begun and again when it is over.
    Stall(Stall),
    /// This many samples found no room when they were taken.
    Dropped(u64),
    /// The session's profile is safe, or was not wanted.
    End,
}

/// A sample that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampled<'a> {
    /// Whose.
    pub thread: ThreadKey,
    /// Root first.
    pub path: &'a [Frame],
    /// When, on the clock of the process that took it.
    pub taken_at: MonotonicNanos,
    /// See [`crate::model::Sample::weight_nanos`].
    pub weight_nanos: u64,
    /// See [`crate::model::Sample::held_nanos`].
    pub held_nanos: u64,
    /// How many samples these are.
    pub count: u32,
    /// They repeat the stack of the one before.
    pub repeated: bool,
}

/// Why nothing of a segment could be read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// Another kind of file.
    #[error("it is no journal")]
    Foreign,
    /// Written by a newer version of this plugin.
    #[error("it is of a newer version ({0})")]
    Newer(u16),
    /// Its first bytes are wrong.
    #[error("its header is damaged")]
    Damaged,
    /// It has the name of another segment.
    #[error("it is not the segment that its name says")]
    Misnamed,
    /// The system cannot read it.
    #[error("it could not be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// How the reading of a segment went.
#[derive(Debug, Default)]
pub struct SegmentReport {
    /// Records that were understood.
    pub records: u64,
    /// Records with a wrong check sum or with what they cannot hold, and those of which a part needs one of these.
    pub damaged: u64,
    /// Records of a kind that this version does not know.
    pub unknown: u64,
    /// It ends in the middle of a record, as one does whose writer was killed.
    pub is_cut: bool,
    /// Why there is nothing, or no more.
    pub error: Option<SegmentError>,
}

/// Reads the segments of one journal, one after the other.
#[derive(Debug)]
pub struct Replay {
    session: SessionId,
    started_at: MonotonicNanos,
    has_head: bool,
    frames: Frames,
    threads: Threads,
    /// Of the whole journal.
    living: HashSet<ThreadKey>,
    modules: HashSet<ModuleId>,
    path_bytes: usize,
    last_tick: u64,
    total_nanos: u64,
    path: Vec<Frame>,
}

impl Replay {
    /// Begins with nothing read.
    pub fn new(session: SessionId) -> Self {
        Replay {
            session,
            started_at: MonotonicNanos(0),
            has_head: false,
            frames: Frames::default(),
            threads: Threads::default(),
            living: HashSet::new(),
            modules: HashSet::new(),
            path_bytes: 0,
            last_tick: 0,
            total_nanos: 0,
            path: Vec::new(),
        }
    }

    /// Reads a segment and shows what is in it.
    pub fn segment(&mut self, sequence: u32, mut input: impl Read, show: &mut dyn FnMut(Event<'_>)) -> SegmentReport {
        let mut report = SegmentReport::default();
        report.error = self.read(sequence, &mut input, show, &mut report).err();
        report
    }

    fn read(
        &mut self,
        sequence: u32,
        input: &mut dyn Read,
        show: &mut dyn FnMut(Event<'_>),
        report: &mut SegmentReport,
    ) -> Result<(), SegmentError> {
        self.frames.clear();
        self.threads.clear();
        let mut header = [0; HEADER_BYTES];
        let count = fill(input, &mut header)?;
        if count < HEADER_BYTES {
            // A writer that was killed just when it had made the file.
            report.is_cut = true;
            return if count == 0 { Ok(()) } else { Err(SegmentError::Damaged) };
        }
        match Header::decode(&header) {
            Opening::Ours(header) if (header.session, header.sequence) == (self.session, sequence) => {}
            Opening::Ours(_) => return Err(SegmentError::Misnamed),
            Opening::Newer(version) => return Err(SegmentError::Newer(version)),
            Opening::Damaged => return Err(SegmentError::Damaged),
            Opening::Foreign => return Err(SegmentError::Foreign),
        }
        let mut record = Vec::new();
        let mut was_damaged = false;
        loop {
            let Some(whole) = next_record(input, &mut record)? else {
                report.is_cut = !record.is_empty();
                return Ok(());
            };
            let (kind, body) = match whole {
                Whole::Good(kind, length) => (kind, record.get(5..5 + length).unwrap_or_default()),
                Whole::Damaged if !was_damaged => {
                    report.damaged += 1;
                    was_damaged = true;
                    self.threads.forget_stacks();
                    continue;
                }
                Whole::Damaged | Whole::TooLong => {
                    report.damaged += 1;
                    return Ok(());
                }
            };
            was_damaged = false;
            let Some(kind) = Kind::of(kind) else {
                report.unknown += 1;
                continue;
            };
            match self.take(kind, Cursor(body), show) {
                Some(true) => report.records += 1,
                Some(false) => report.damaged += 1,
                None => {
                    report.damaged += 1;
                    if kind == Kind::Samples {
                        self.threads.forget_stacks();
                    }
                }
            }
        }
    }

    /// Shows what a record holds. `None` when it is not one of its kind, `false` when some of it cannot be shown because a record before is lost.
    fn take(&mut self, kind: Kind, mut cursor: Cursor<'_>, show: &mut dyn FnMut(Event<'_>)) -> Option<bool> {
        // Times count from the session's start.
        if !self.has_head && !matches!(kind, Kind::Head | Kind::End) {
            return None;
        }
        match kind {
            Kind::Head => {
                let head = SessionHead::decode(cursor.0)?;
                if !self.has_head {
                    self.started_at = head.started_at;
                    self.has_head = true;
                }
                show(Event::Head(&head));
            }
            Kind::Module => {
                let module = module(&mut cursor)?;
                if !self.modules.contains(&module.id) {
                    self.path_bytes = self.path_bytes.saturating_add(module.path.as_os_str().len());
                    if self.modules.len() >= limits::JOURNAL_MODULES || self.path_bytes > limits::JOURNAL_PATHS_BYTES {
                        return None;
                    }
                    self.modules.insert(module.id);
                    show(Event::Module(module));
                }
            }
            Kind::Thread => {
                let number = cursor.number()?;
                let key = ThreadKey {
                    tid: Tid::new(i32::try_from(cursor.number()?).ok()?),
                    serial: cursor.small()?,
                };
                let name = text(&mut cursor)?;
                if self.living.len() >= limits::JOURNAL_THREADS && !self.living.contains(&key) {
                    return None;
                }
                self.threads.set(number, key)?;
                self.living.insert(key);
                show(Event::Thread(key, name));
            }
            Kind::ThreadEnded => {
                let key = self.threads.remove(cursor.number()?)?;
                let name = text(&mut cursor)?;
                self.living.remove(&key);
                show(Event::ThreadEnded(key, name));
            }
            Kind::Frames => self.frames.take(cursor)?,
            Kind::Samples => return self.samples(cursor, show),
            Kind::Ticks => self.ticks(cursor, show)?,
            Kind::Dropped => show(Event::Dropped(cursor.number()?)),
            Kind::Stall => {
                let began = cursor.number()?;
                let ended = match cursor.number()?.checked_sub(1) {
                    Some(micros) => Some(self.at(began.checked_add(micros)?)),
                    None => None,
                };
                let began = self.at(began);
                show(Event::Stall(Stall { began, ended }));
            }
            Kind::End => show(Event::End),
        }
        Some(true)
    }

    fn at(&self, micros: u64) -> MonotonicNanos {
        MonotonicNanos(self.started_at.0.saturating_add(micros.saturating_mul(1_000)))
    }

    fn samples(&mut self, mut cursor: Cursor<'_>, show: &mut dyn FnMut(Event<'_>)) -> Option<bool> {
        let mut time = cursor.number()?;
        let mut all_known = true;
        let mut path = std::mem::take(&mut self.path);
        while !cursor.is_empty() {
            let item = self.item(&mut cursor, &mut time)?;
            let Some(thread) = self.threads.get(item.thread) else {
                all_known = false;
                continue;
            };
            if let Some(leaf) = item.leaf {
                thread.leaf = Some(leaf);
            }
            let (key, leaf) = (thread.key, thread.leaf);
            // Its frames or the stack that it repeats were in a record that is lost.
            if leaf.is_none_or(|leaf| !self.frames.path(leaf, &mut path)) {
                all_known = false;
                continue;
            }
            let total = self.total_nanos.saturating_add(item.weight_micros * 1_000);
            if total > limits::JOURNAL_TOTAL_NANOS {
                return None;
            }
            self.total_nanos = total;
            show(Event::Sample(Sampled {
                thread: key,
                path: &path,
                taken_at: self.at(time),
                weight_nanos: item.weight_micros * 1_000,
                held_nanos: item.held_micros * 1_000,
                count: item.count,
                repeated: item.leaf.is_none(),
            }));
        }
        self.path = path;
        Some(all_known)
    }

    fn item(&self, cursor: &mut Cursor<'_>, time: &mut u64) -> Option<ItemRead> {
        let thread = cursor.number()?;
        let leaf = cursor.small()?.checked_sub(1);
        let count = match leaf {
            Some(_) => 1,
            None => cursor.small()?,
        };
        let passed = cursor.signed()?;
        *time = time.checked_add_signed(passed)?;
        let weight = u64::try_from(passed.checked_add(cursor.signed()?)?).ok()?;
        let held_micros = match leaf {
            Some(_) => cursor.number()?.min(weight),
            None => 0,
        };
        (weight <= limits::JOURNAL_WEIGHT_MICROS).then_some(ItemRead {
            thread,
            leaf,
            count,
            weight_micros: weight,
            held_micros,
        })
    }

    fn ticks(&mut self, mut cursor: Cursor<'_>, show: &mut dyn FnMut(Event<'_>)) -> Option<()> {
        let mut time = cursor.number()?;
        while !cursor.is_empty() {
            time = time.checked_add(cursor.number()?)?;
            let micros = cursor.number()?;
            // Never backwards: whoever counts them by minutes would have one for each.
            if time < self.last_tick {
                return None;
            }
            self.last_tick = time;
            show(Event::Tick(self.at(time), micros as f32 / 1_000.0));
        }
        Some(())
    }
}

/// One entry of a record of samples.
struct ItemRead {
    thread: u64,
    /// `None`: as before.
    leaf: Option<u32>,
    count: u32,
    weight_micros: u64,
    held_micros: u64,
}

/// What stands at a place where a record should be.
enum Whole {
    /// Kind and length.
    Good(u8, usize),
    Damaged,
    TooLong,
}

/// Reads a record with all that belongs to it. `None` at the end, `record` then has what there is of another one.
fn next_record(input: &mut dyn Read, record: &mut Vec<u8>) -> io::Result<Option<Whole>> {
    let mut start = [0; 5];
    let count = fill(input, &mut start)?;
    record.clear();
    record.extend_from_slice(start.get(..count).unwrap_or_default());
    let [kind, length @ ..] = start;
    if count < start.len() || kind == 0 {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > limits::JOURNAL_RECORD_BYTES {
        return Ok(Some(Whole::TooLong));
    }
    // Grows with what is there, not with what the length says.
    input.take(length as u64 + 4).read_to_end(record)?;
    let Some((body, sum)) = record
        .split_last_chunk::<4>()
        .filter(|(body, _)| body.len() == 5 + length)
    else {
        return Ok(None);
    };
    Ok(Some(if crc32fast::hash(body).to_le_bytes() == *sum {
        Whole::Good(kind, length)
    } else {
        Whole::Damaged
    }))
}

/// Reads until `into` is full or there is no more.
fn fill(input: &mut dyn Read, into: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = into.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn module(cursor: &mut Cursor<'_>) -> Option<Module> {
    let id = ModuleId::new(cursor.small()?);
    let start = cursor.number()?;
    let end = start.checked_add(cursor.number()?)?;
    let base_svma = cursor.number()?;
    let (device, inode) = (cursor.number()?, cursor.number()?);
    let build_id = BuildId::new(cursor.bytes(BuildId::MAX_BYTES)?);
    let path = cursor.bytes(limits::JOURNAL_PATH_BYTES)?;
    // No system names a file like this.
    if path.contains(&0) {
        return None;
    }
    Some(Module {
        id,
        path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        avma: start..end,
        base_svma,
        build_id,
        device,
        inode,
    })
}
