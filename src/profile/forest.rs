//! The call trees of all threads of a session.
//!
//! # Problem
//! A session runs for minutes or for weeks, on one thread or a thousand, each of which may recurse without end. Its memory has to have a limit that does not
//! depend on any of this, and the trees' sums must still be the time that passed.
//!
//! # Algorithm
//! All trees share the room for frames ([`SESSION_NODES`]) and the room for times ([`SESSION_TIMES`], one per frame and minute in which it was leaf-most).
//! A tree that finds none left books at a frame that says so. So that a thread that is seen late is not a blank, each has room for some frames of its own
//! ([`THREAD_NODES`]). An endless session forgets its oldest minute whenever a new one begins, in all trees at once, and with it the frames that were seen
//! only then.
//!
//! # Price
//! Two additions per sample. Forgetting copies what is kept: some tens of milliseconds a minute for a large tree, on the thread that books the samples.

use std::collections::HashMap;

use super::ended::{EndedThreads, profile};
use super::frame::FrameKey;
use super::ledger::Ledger;
use super::snapshot::ThreadProfile;
use super::tree::{Room, Tree};
use crate::limits::{SESSION_NODES, SESSION_TIMES, THREAD_NODES, TREE_NODES};
use crate::model::{Retention, ThreadKey};

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    retention: Retention,
    living: HashMap<ThreadKey, Ledger>,
    ended: EndedThreads,
    /// Room that all trees together take.
    used: Room,
    newest: u32,
}

impl Forest {
    /// No trees yet.
    pub fn new(retention: Retention) -> Self {
        Forest {
            retention,
            ..Forest::default()
        }
    }

    /// Books a sample: its thread, its stack, root first, its window, the nanoseconds since the previous sample of this thread, and how many of them, at the
    /// end, are certainly this stack's.
    pub fn book(&mut self, thread: ThreadKey, path: &[FrameKey], window: u32, nanos: u64, held: u64) {
        self.with(thread, window, |ledger, window| ledger.book(path, window, nanos, held));
    }

    /// Books time of a thread that is all one stack's, root first: nothing of it is shared with the stacks before and after.
    pub fn add(&mut self, thread: ThreadKey, path: &[FrameKey], window: u32, nanos: u64) {
        self.with(thread, window, |ledger, window| ledger.add(path, window, nanos));
    }

    /// Lets `book` work on a thread's ledger within the room that is left.
    fn with(&mut self, thread: ThreadKey, window: u32, book: impl FnOnce(&mut Ledger, u32)) {
        if window > self.newest {
            self.newest = window;
            self.forget();
        }
        let oldest = self.oldest();
        let used = self.used;
        let ledger = self.living.entry(thread).or_default();
        let before = ledger.tree().used();
        ledger.limit(Room {
            nodes: (before.nodes + SESSION_NODES.saturating_sub(used.nodes)).clamp(THREAD_NODES, TREE_NODES),
            times: before.times + SESSION_TIMES.saturating_sub(used.times),
        });
        book(ledger, window.max(oldest));
        let after = ledger.tree().used();
        // A tree only grows while samples are booked.
        self.used.nodes += after.nodes - before.nodes;
        self.used.times += after.times - before.times;
    }

    /// A thread has ended; this was its name.
    pub fn end(&mut self, thread: ThreadKey, name: String) {
        if let Some(ledger) = self.living.remove(&thread) {
            self.ended.add(thread, name, ledger.into_tree());
            // Trees may have been put together.
            self.used = self.count();
        }
    }

    /// The oldest window that is kept.
    pub fn oldest(&self) -> u32 {
        self.retention.oldest(self.newest)
    }

    /// Room that all trees together take.
    pub fn used(&self) -> Room {
        self.used
    }

    /// The threads in the order in which they were first seen. `name` gives the names of those that still live.
    pub fn into_threads(self, name: impl Fn(ThreadKey) -> String) -> Vec<ThreadProfile> {
        let living = self
            .living
            .into_iter()
            .map(|(key, ledger)| profile(key, name(key), ledger.into_tree()));
        let mut threads: Vec<ThreadProfile> = living.chain(self.ended.into_profiles()).collect();
        threads.sort_by_key(|thread| thread.key.serial);
        threads
    }

    fn forget(&mut self) {
        let oldest = self.oldest();
        if oldest == 0 {
            return;
        }
        for ledger in self.living.values_mut() {
            ledger.forget_before(oldest);
        }
        self.ended.forget_before(oldest);
        self.used = self.count();
    }

    fn count(&self) -> Room {
        let living = self.living.values().map(Ledger::tree);
        living
            .chain(self.ended.trees())
            .map(Tree::used)
            .fold(Room::default(), |sum, used| Room {
                nodes: sum.nodes + used.nodes,
                times: sum.times + used.times,
            })
    }
}

#[cfg(test)]
#[path = "forest_tests.rs"]
mod tests;
