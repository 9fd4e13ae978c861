//! The threads that are sampled.

use std::collections::HashMap;

use super::capture::StackBounds;
use super::queue::Stack;
use crate::model::{MonotonicNanos, ThreadKey, Tid};
use crate::sync::Ticket;
use crate::sys::maps::{self, Mapping};
use crate::sys::task::{self, SyscallFile};

/// Which threads to sample.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThreadSelection {
    /// These, as long as they live.
    Tids(Vec<Tid>),
    /// All of the process except our own, also those that begin later.
    All,
}

/// A request that a thread has not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) ticket: Ticket,
    pub(super) sent_at: MonotonicNanos,
}

/// The last stack of a thread, and where it stood.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) stack: Stack,
    pub(super) sp: u64,
    /// CPU time at a moment when the thread was known to wait with exactly this stack. While it stays the same, so does the stack.
    pub(super) settled_cpu: Option<u64>,
}

/// One thread's life.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) key: ThreadKey,
    started: u64,
    pub(super) syscall: SyscallFile,
    pub(super) bounds: StackBounds,
    pub(super) bounds_looked_at: Option<MonotonicNanos>,
    pub(super) open: Option<Request>,
    /// Up to here its time is accounted for.
    pub(super) since: MonotonicNanos,
    /// CPU time at the last signal, to tell a busy thread from one that mostly waits.
    pub(super) cpu: u64,
    pub(super) last: Option<Last>,
    pub(super) blocked: bool,
    /// When the signal mask was last looked at.
    pub(super) mask_looked_at: MonotonicNanos,
}

/// All that are sampled now.
#[derive(Debug)]
pub(super) struct Threads {
    selection: ThreadSelection,
    living: HashMap<Tid, Thread>,
    serials: u32,
}

impl Threads {
    pub(super) fn new(selection: ThreadSelection) -> Self {
        Threads {
            selection,
            living: HashMap::new(),
            serials: 0,
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.living.values_mut()
    }

    /// Takes up new threads and lets go of those that have ended or whose id belongs to another one now (those are returned). `named` is told
    /// the name of each that lives: the newest name counts.
    pub(super) fn look(
        &mut self,
        now: MonotonicNanos,
        own: &[Tid],
        mut named: impl FnMut(ThreadKey, String),
    ) -> Vec<Thread> {
        let (living, gone): (HashMap<Tid, Thread>, HashMap<Tid, Thread>) = std::mem::take(&mut self.living)
            .into_iter()
            .partition(|(tid, thread)| task::start_ticks(*tid) == Some(thread.started));
        self.living = living;
        let candidates = match &mut self.selection {
            // Once: an id that is free again may be given to a thread nobody asked for.
            ThreadSelection::Tids(tids) => std::mem::take(tids),
            ThreadSelection::All => task::all().unwrap_or_default(),
        };
        for tid in candidates {
            if self.living.contains_key(&tid) || own.contains(&tid) {
                continue;
            }
            if let Some(thread) = Thread::new(tid, self.serials + 1, now) {
                self.serials += 1;
                self.living.insert(tid, thread);
            }
        }
        for (tid, thread) in &self.living {
            if let Some(name) = task::name(*tid) {
                named(thread.key, name);
            }
        }
        gone.into_values().collect()
    }

    pub(super) fn remove(&mut self, tid: Tid) {
        self.living.remove(&tid);
    }
}

impl Thread {
    fn new(tid: Tid, serial: u32, now: MonotonicNanos) -> Option<Self> {
        let started = task::start_ticks(tid)?;
        Some(Thread {
            key: ThreadKey { tid, serial },
            started,
            syscall: SyscallFile::open(tid),
            bounds: StackBounds::default(),
            bounds_looked_at: None,
            open: None,
            since: now,
            cpu: task::cpu_nanos(tid)?,
            last: None,
            blocked: task::blocks_signal(tid, libc::SIGPROF)?,
            mask_looked_at: now,
        })
    }
}

/// The bounds of the stack that holds `sp`, if it is the thread's own: the main thread's is the mapping that the kernel calls `[stack]`; that of any
/// other thread ends with its control block, which the C library places at the end of the stack it gave the thread (or was given for it). Only such a
/// mapping is sure to stay as long as the thread lives; fibers and alternate stacks are left unknown.
pub(super) fn bounds(mappings: &[Mapping], is_main: bool, sp: u64, control_block: u64) -> StackBounds {
    let Some(mapping) = maps::mapping_of(mappings, sp).filter(|mapping| mapping.readable) else {
        return StackBounds::default();
    };
    let range = &mapping.range;
    if is_main {
        if mapping.path.as_os_str() != "[stack]" {
            return StackBounds::default();
        }
        return StackBounds {
            floor: range.end.saturating_sub(task::stack_limit()).min(range.start),
            low: range.start,
            high: range.end,
        };
    }
    if !range.contains(&control_block) || control_block <= sp {
        return StackBounds::default();
    }
    StackBounds {
        floor: range.start,
        low: range.start,
        high: control_block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn mapping(range: std::ops::Range<u64>, path: &str) -> Mapping {
        Mapping {
            range,
            readable: true,
            device: 0,
            inode: 0,
            path: PathBuf::from(path),
        }
    }

    #[test]
    fn bounds_are_known_for_a_threads_own_stack_only() {
        let mappings = [mapping(0x1000..0x9000, ""), mapping(0x100_0000..0x200_0000, "[stack]")];
        let own = bounds(&mappings, false, 0x8000, 0x8f00);
        assert_eq!((own.low, own.high), (0x1000, 0x8f00));
        assert!(own.holds(0x8000) && !own.holds(0x8f00) && !own.holds(0xfff));
        let unknown = StackBounds::default();
        assert!(!unknown.holds(0));
        assert_eq!(bounds(&mappings, false, 0x8000, 0x20_0000), unknown, "a fiber");
        assert_eq!(
            bounds(&mappings, false, 0x8f80, 0x8f00),
            unknown,
            "beyond the control block"
        );
        assert_eq!(bounds(&mappings, false, 0xa000, 0xb000), unknown, "not mapped");
        let main = bounds(&mappings, true, 0x1ff_0000, 0x8f00);
        assert_eq!((main.low, main.high), (0x100_0000, 0x200_0000));
        assert!(main.floor <= main.low);
        assert_eq!(
            bounds(&mappings, true, 0x8000, 0x8f00),
            unknown,
            "the main thread on another stack"
        );
    }

    #[test]
    fn a_thread_is_taken_up_once_and_let_go_when_it_ends() {
        let (send, receive) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(crate::sys::thread::current_tid()).unwrap();
            let _ = released.recv();
        });
        let tid = receive.recv().unwrap();
        let mut threads = Threads::new(ThreadSelection::Tids(vec![tid, Tid::new(i32::MAX)]));
        let mut names = Vec::new();
        assert!(
            threads
                .look(MonotonicNanos(1), &[], |key, name| names.push((key.tid, name)))
                .is_empty()
        );
        assert_eq!(names.len(), 1);
        assert_eq!(
            threads.iter_mut().map(|thread| thread.key).collect::<Vec<_>>(),
            [ThreadKey { tid, serial: 1 }]
        );
        drop(release);
        thread.join().unwrap();
        // The kernel removes the thread's entry a moment after `join` returns.
        while task::start_ticks(tid).is_some() {
            std::thread::yield_now();
        }
        let gone = threads.look(MonotonicNanos(2), &[], |_, _| ());
        assert_eq!(gone.len(), 1);
        assert_eq!(threads.iter_mut().count(), 0);
    }
}
