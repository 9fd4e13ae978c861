//! Batches as records of one segment.
//!
//! # Problem
//! A stack of 40 frames is 640 bytes in memory. Written like that, a session of an hour on one thread takes half a gigabyte.
//!
//! # Algorithm
//! Stacks are kept as a tree: a frame is written once for each frame that called it, with the number of that one, and a sample is the number of its leaf. Times are
//! differences in microseconds; what rounding takes from a thread's time is added to its next sample, so that sums stay right.
//!
//! # Price
//! Six bytes for most samples, some eight for a new frame. Two stacks that follow each other share most of their frames, only the rest is looked up.

use std::collections::HashMap;

use super::format::{Kind, number_record, record};
use super::head::put_text;
use super::queue::{Batch, Item, Stack, Tick};
use super::wire::{put, put_bytes, put_signed};
use crate::limits;
use crate::model::{Module, MonotonicNanos, StackEnd, Stall, ThreadKey};

/// What a frame is, before its value: how the stack ends (the value is the number of [`StackEnd`]), frames that were left out (their count), then
/// [`NATIVE`] plus the number of the module (the address in it).
pub(super) const ENDED: u64 = 0;
pub(super) const OMITTED: u64 = 1;
pub(super) const NATIVE: u64 = 2;

/// A frame as it is written.
type Word = (u64, u64);

#[derive(Debug)]
struct PackedThread {
    number: u64,
    name: String,
    /// What rounding has taken so far, in nanoseconds.
    rest: u64,
    /// Whether a stack of it is in this segment.
    has_stack: bool,
    /// Its last stack, with which the next segment begins.
    last: Vec<Word>,
}

/// The tables of one segment.
#[derive(Debug)]
pub(super) struct Packer {
    started_at: MonotonicNanos,
    threads: HashMap<ThreadKey, PackedThread>,
    next_thread: u64,
    nodes: HashMap<(u32, Word), u32>,
    /// The stack before, root first, and its frames' numbers.
    path: Vec<(Word, u32)>,
    words: Vec<Word>,
    /// A stall that is not over: the segment that says when it began may go.
    stall: Option<Stall>,
}

impl Packer {
    pub(super) fn new(started_at: MonotonicNanos) -> Self {
        Packer {
            started_at,
            threads: HashMap::new(),
            next_thread: 1,
            nodes: HashMap::new(),
            path: Vec::new(),
            words: Vec::new(),
            stall: None,
        }
    }

    /// Begins a new segment. Writes what it needs of the one before: the threads that live, and the stall that goes on.
    pub(super) fn begin_segment(&mut self, out: &mut Vec<u8>) {
        self.nodes.clear();
        self.path.clear();
        self.next_thread = 1;
        for (key, thread) in &mut self.threads {
            thread.number = self.next_thread;
            thread.has_stack = false;
            self.next_thread += 1;
            write_thread(out, *key, thread);
        }
        if let Some(stall) = self.stall {
            self.write_stall(&stall, out);
        }
    }

    /// Whether the tables have no room for another batch.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() + limits::JOURNAL_BATCH_FRAMES + 2 * limits::JOURNAL_BATCH_SAMPLES > limits::JOURNAL_NODES
            || self.next_thread > limits::JOURNAL_THREADS as u64 / 2
    }

    /// Appends the records of a batch, its modules excepted.
    pub(super) fn pack(&mut self, batch: &Batch, out: &mut Vec<u8>) {
        for (key, name) in &batch.threads {
            self.name(*key, name, out);
        }
        let mut frames = Vec::new();
        let first_new = self.nodes.len() as u32 + 1;
        let mut samples = Vec::new();
        let mut before = batch.items.first().map_or(0, |item| self.micros(item.taken_at));
        put(&mut samples, before);
        for item in &batch.items {
            if !self.threads.contains_key(&item.thread) {
                self.name(item.thread, "", out);
            }
            let at = self.micros(item.taken_at);
            self.item(batch, item, at.wrapping_sub(before) as i64, &mut frames, &mut samples);
            before = at;
        }
        if !frames.is_empty() {
            record(out, Kind::Frames, |out| {
                put(out, u64::from(first_new));
                out.append(&mut frames);
            });
        }
        if !batch.items.is_empty() {
            record(out, Kind::Samples, |out| out.append(&mut samples));
        }
        if let Some(first) = batch.ticks.first() {
            record(out, Kind::Ticks, |out| self.ticks(first, &batch.ticks, out));
        }
        for stall in &batch.stalls {
            self.write_stall(stall, out);
            self.stall = Some(*stall).filter(|stall| stall.ended.is_none());
        }
        if batch.dropped > 0 {
            number_record(out, Kind::Dropped, batch.dropped);
        }
        for (key, name) in &batch.ended {
            if let Some(thread) = self.threads.remove(key) {
                record(out, Kind::ThreadEnded, |out| {
                    put(out, thread.number);
                    put_text(out, name);
                });
            }
        }
    }

    fn write_stall(&self, stall: &Stall, out: &mut Vec<u8>) {
        record(out, Kind::Stall, |out| {
            let began = self.micros(stall.began);
            put(out, began);
            put(
                out,
                stall
                    .ended
                    .map_or(0, |ended| self.micros(ended).saturating_sub(began) + 1),
            );
        });
    }

    fn micros(&self, at: MonotonicNanos) -> u64 {
        at.since(self.started_at) / 1_000
    }

    fn name(&mut self, key: ThreadKey, name: &str, out: &mut Vec<u8>) {
        let thread = self.threads.entry(key).or_insert_with(|| {
            let number = self.next_thread;
            self.next_thread += 1;
            PackedThread {
                number,
                name: String::new(),
                rest: 0,
                has_stack: false,
                last: Vec::new(),
            }
        });
        name.clone_into(&mut thread.name);
        write_thread(out, key, thread);
    }

    fn item(&mut self, batch: &Batch, item: &Item, passed: i64, frames: &mut Vec<u8>, samples: &mut Vec<u8>) {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        let Some(thread) = self.threads.get_mut(&item.thread) else {
            return;
        };
        let nanos = item.weight_nanos + thread.rest;
        thread.rest = nanos % 1_000;
        let number = thread.number;
        // A repetition that is the first in its segment comes with its stack: that of the segment before is not here.
        let is_whole = item.stack.is_some() || !thread.has_stack;
        thread.has_stack = true;
        match &item.stack {
            Some(stack) => {
                read_words(batch, stack, &mut words);
                thread.last.clone_from(&words);
            }
            None if is_whole => words.clone_from(&thread.last),
            None => {}
        }
        let weight = ((nanos / 1_000) as i64).wrapping_sub(passed);
        let repeats = item.repeats.max(1);
        if is_whole {
            let leaf = self.leaf(&words, frames);
            put(samples, number);
            put(samples, u64::from(leaf) + 1);
            put_signed(samples, passed);
            put_signed(samples, weight);
            put(samples, item.held_nanos.min(item.weight_nanos) / 1_000);
            if repeats > 1 {
                repeat(samples, number, repeats - 1, 0, 0);
            }
        } else {
            repeat(samples, number, repeats, passed, weight);
        }
        self.words = words;
    }

    /// The number of a stack's leaf, 0 for one without frames. Appends those that have none yet.
    fn leaf(&mut self, words: &[Word], frames: &mut Vec<u8>) -> u32 {
        let common = self
            .path
            .iter()
            .zip(words)
            .take_while(|((before, _), now)| before == *now)
            .count();
        self.path.truncate(common);
        let mut parent = self.path.last().map_or(0, |(_, number)| *number);
        for word in words.get(common..).unwrap_or_default() {
            let next = self.nodes.len() as u32 + 1;
            let number = *self.nodes.entry((parent, *word)).or_insert_with(|| {
                put(frames, u64::from(next - parent));
                put(frames, word.0);
                put(frames, word.1);
                next
            });
            self.path.push((*word, number));
            parent = number;
        }
        parent
    }

    fn ticks(&self, first: &Tick, ticks: &[Tick], out: &mut Vec<u8>) {
        let mut before = self.micros(first.at);
        put(out, before);
        for tick in ticks {
            let at = self.micros(tick.at).max(before);
            put(out, at - before);
            // Not finite: 0.
            put(out, (f64::from(tick.mspt) * 1_000.0).max(0.0) as u64);
            before = at;
        }
    }
}

fn repeat(samples: &mut Vec<u8>, thread: u64, repeats: u32, passed: i64, weight: i64) {
    put(samples, thread);
    put(samples, 0);
    put(samples, u64::from(repeats));
    put_signed(samples, passed);
    put_signed(samples, weight);
}

/// A stack from its root, with what stands for the frames that are missing.
fn read_words(batch: &Batch, stack: &Stack, words: &mut Vec<Word>) {
    let native = batch
        .frames
        .get(stack.first..stack.first + stack.count)
        .unwrap_or_default();
    let leaf_side = match stack.omitted {
        0 => native.len(),
        _ => native.len().min(limits::LEAF_FRAMES),
    };
    let (leaf_side, root_side) = native.split_at(leaf_side);
    let word = |(module, rva): &(crate::model::ModuleId, u64)| (NATIVE + u64::from(module.get()), *rva);
    if stack.end != StackEnd::Root {
        words.push((ENDED, stack.end as u64));
    }
    words.extend(root_side.iter().rev().map(word));
    if stack.omitted > 0 {
        words.push((OMITTED, u64::from(stack.omitted)));
    }
    words.extend(leaf_side.iter().rev().map(word));
}

fn write_thread(out: &mut Vec<u8>, key: ThreadKey, thread: &PackedThread) {
    record(out, Kind::Thread, |out| {
        put(out, thread.number);
        put(out, key.tid.get().max(0) as u64);
        put(out, u64::from(key.serial));
        put_text(out, &thread.name);
    });
}

/// Appends a module.
pub(super) fn write_module(out: &mut Vec<u8>, module: &Module) {
    use std::os::unix::ffi::OsStrExt;
    record(out, Kind::Module, |out| {
        put(out, u64::from(module.id.get()));
        put(out, module.avma.start);
        put(out, module.avma.end.saturating_sub(module.avma.start));
        put(out, module.base_svma);
        put(out, module.device);
        put(out, module.inode);
        put_bytes(out, module.build_id.as_ref().map_or(&[][..], |id| id.bytes()));
        let path = module.path.as_os_str().as_bytes();
        // Without its path it has no names.
        let path = if path.len() <= limits::JOURNAL_PATH_BYTES {
            path
        } else {
            &[]
        };
        put_bytes(out, path);
    });
}
