//! The threads that are sampled.
//!
//! Ten times a second the process's threads are listed: new ones join, those that are gone leave. A thread's *life* is its id and the time of its birth; each
//! gets a serial of its own, so that two threads that have one id after the other are never one. Our own threads are never among them.
//!
//! **Names.** A thread is born with the name of the thread that made it, and mostly named a moment later; some are named anew for each job. So: a name is
//! read whenever threads are listed as long as the thread is younger than a second, after that once a second. When names were asked for, the name of now
//! decides: a thread that gets such a name joins, one that loses it leaves, and what was sampled meanwhile stays. It is one thread in the profile all the time,
//! shown with the last name it had.

use std::collections::{HashMap, HashSet};

use super::thread::Thread;
use crate::limits;
use crate::model::{MonotonicNanos, ThreadKey, ThreadNames, Tid};
use crate::sys::task;

/// Which threads to sample.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ThreadSelection {
    /// These, as long as they live.
    Tids(Vec<Tid>),
    /// All of the process except our own, also those that begin later.
    All,
    /// Those of these names, also those that begin later or are named so later.
    Named(ThreadNames),
}

impl ThreadSelection {
    /// The thread, if it is one and no other will join.
    pub(super) fn only(&self) -> Option<Tid> {
        match self {
            ThreadSelection::Tids(tids) => <[Tid; 1]>::try_from(tids.as_slice()).ok().map(|[tid]| tid),
            _ => None,
        }
    }

    fn wants(&self, name: &str) -> bool {
        match self {
            ThreadSelection::Tids(_) | ThreadSelection::All => true,
            ThreadSelection::Named(names) => names.contains(name),
        }
    }
}

/// When a thread that is not sampled was first seen, and its name last read.
#[derive(Clone, Copy, Debug)]
struct Other {
    born: MonotonicNanos,
    named_at: MonotonicNanos,
}

/// All that are sampled now.
#[derive(Debug)]
pub(super) struct Threads {
    selection: ThreadSelection,
    living: Vec<Thread>,
    others: HashMap<Tid, Other>,
    serials: u32,
    /// Threads that were not sampled because there are too many.
    refused: HashSet<Tid>,
    pub(super) refusals: u64,
}

/// Whether a name that was read then is to be read again.
fn name_is_due(born: MonotonicNanos, named_at: MonotonicNanos, now: MonotonicNanos) -> bool {
    now.since(born) < limits::NAMES_CHECK_NANOS || now.since(named_at) >= limits::NAMES_CHECK_NANOS
}

impl Threads {
    pub(super) fn new(selection: ThreadSelection) -> Self {
        Threads {
            selection,
            living: Vec::new(),
            others: HashMap::new(),
            serials: 0,
            refused: HashSet::new(),
            refusals: 0,
        }
    }

    /// Those to sample.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.living.iter_mut().filter(|thread| thread.wanted)
    }

    /// Those that are known but not to be sampled now.
    pub(super) fn unwanted_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.living.iter_mut().filter(|thread| !thread.wanted)
    }

    /// How many are sampled.
    pub(super) fn count(&self) -> usize {
        self.living.iter().filter(|thread| thread.wanted).count()
    }

    /// How many were ever sampled.
    pub(super) fn ever(&self) -> u32 {
        self.serials
    }

    /// Takes up new threads and lets go of those that have ended or whose id belongs to another one now (those are returned). `own` tells our own threads and is
    /// asked after the threads were listed. `named` is told every name that is new.
    pub(super) fn look(
        &mut self,
        now: MonotonicNanos,
        own: impl FnOnce() -> Vec<Tid>,
        mut named: impl FnMut(ThreadKey, &str),
    ) -> Vec<Thread> {
        let (listed, candidates) = match &mut self.selection {
            // Each until it is known what it is, and not again: an id that is free again may be given to a thread nobody asked for.
            ThreadSelection::Tids(tids) => (None, std::mem::take(tids)),
            ThreadSelection::All | ThreadSelection::Named(_) => {
                let all = task::all().ok();
                let set = all.as_ref().map(|all| all.iter().copied().collect::<HashSet<Tid>>());
                (set, all.unwrap_or_default())
            }
        };
        let own = own();
        let gone = self.leave(listed.as_ref(), &own);
        self.rename(now, &mut named);
        let unknown = self.join(candidates, &own, now, &mut named);
        if let ThreadSelection::Tids(tids) = &mut self.selection {
            *tids = unknown;
        }
        gone
    }

    /// Takes those out that are gone. One of which nothing can be known now (no descriptor is free) stays.
    fn leave(&mut self, listed: Option<&HashSet<Tid>>, own: &[Tid]) -> Vec<Thread> {
        if let Some(listed) = listed {
            self.others.retain(|tid, _| listed.contains(tid));
            self.refused.retain(|tid| listed.contains(tid));
        }
        let gone = |thread: &mut Thread| {
            let tid = thread.key.tid;
            let same = match listed {
                Some(listed) => {
                    // One that has not run cannot have ended and another have begun.
                    let ran = std::mem::take(&mut thread.ran);
                    listed.contains(&tid) && (!ran || thread.lives())
                }
                None => task::may_live(tid, thread.started),
            };
            !same || own.contains(&tid)
        };
        self.living.extract_if(.., gone).collect()
    }

    /// Reads the names that are due.
    fn rename(&mut self, now: MonotonicNanos, named: &mut impl FnMut(ThreadKey, &str)) {
        for thread in &mut self.living {
            if !name_is_due(thread.born, thread.named_at, now) {
                continue;
            }
            thread.named_at = now;
            let name = task::name(thread.key.tid).ok();
            let Some(name) = name.filter(|name| *name != thread.name) else {
                continue;
            };
            named(thread.key, &name);
            thread.name = name;
            let wanted = self.selection.wants(&thread.name);
            if wanted && !thread.wanted {
                // What it did meanwhile was not asked for.
                thread.since = now;
            }
            thread.wanted = wanted;
        }
    }

    /// Takes up those candidates that are wanted. Returns those of which nothing can be known now.
    fn join(
        &mut self,
        candidates: Vec<Tid>,
        own: &[Tid],
        now: MonotonicNanos,
        named: &mut impl FnMut(ThreadKey, &str),
    ) -> Vec<Tid> {
        let mut unknown = Vec::new();
        let known: HashSet<Tid> = self.living.iter().map(|thread| thread.key.tid).collect();
        for tid in candidates {
            if known.contains(&tid) || own.contains(&tid) {
                continue;
            }
            let other = self.others.get(&tid).copied();
            if other.is_some_and(|other| !name_is_due(other.born, other.named_at, now)) {
                continue;
            }
            let name = match task::name(tid) {
                Ok(name) => name,
                Err(error) => {
                    unknown.extend((!task::says_gone(&error)).then_some(tid));
                    continue;
                }
            };
            if !self.selection.wants(&name) {
                let born = other.map_or(now, |other| other.born);
                self.others.insert(tid, Other { born, named_at: now });
                continue;
            }
            if self.living.len() >= limits::SAMPLED_THREADS {
                self.refusals += u64::from(self.refused.insert(tid));
                continue;
            }
            match Thread::new(tid, self.serials + 1, name, now) {
                Ok(thread) => {
                    self.serials += 1;
                    self.others.remove(&tid);
                    named(thread.key, &thread.name);
                    self.living.push(thread);
                }
                Err(error) => unknown.extend((!task::says_gone(&error)).then_some(tid)),
            }
        }
        unknown
    }

    pub(super) fn remove(&mut self, key: ThreadKey) {
        self.living.retain(|thread| thread.key != key);
    }

    /// Another thread is the first of the next round: when answers have to wait for a free slot, it is not always the same ones that do.
    pub(super) fn rotate(&mut self) {
        if self.living.len() > limits::CAPTURE_SLOTS {
            self.living.rotate_left(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::current_tid;
    use std::sync::mpsc;

    struct Sleeper {
        tid: Tid,
        release: mpsc::Sender<&'static str>,
        renamed: mpsc::Receiver<()>,
        thread: std::thread::JoinHandle<()>,
    }

    /// A thread that takes every name it is sent, until the sender is dropped.
    fn sleeper(name: &str) -> Sleeper {
        let (send, receive) = mpsc::channel();
        let (release, released) = mpsc::channel::<&'static str>();
        let (told, renamed) = mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            send.send(current_tid()).unwrap();
            while let Ok(name) = released.recv() {
                let name = std::ffi::CString::new(name).unwrap();
                // SAFETY: a name of at most 15 bytes for this very thread.
                unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
                told.send(()).unwrap();
            }
        });
        Sleeper {
            tid: receive.recv().unwrap(),
            release,
            renamed,
            thread: thread.unwrap(),
        }
    }

    impl Sleeper {
        fn rename(&self, name: &'static str) {
            self.release.send(name).unwrap();
            self.renamed.recv().unwrap();
        }

        fn end(self) -> Tid {
            drop(self.release);
            self.thread.join().unwrap();
            // The kernel removes the thread's entry a moment after `join` returns.
            while task::start_ticks(self.tid).is_ok() {
                std::thread::yield_now();
            }
            self.tid
        }
    }

    fn look(threads: &mut Threads, now: u64) -> (Vec<Thread>, Vec<(ThreadKey, String)>) {
        let mut names = Vec::new();
        let gone = threads.look(MonotonicNanos(now), Vec::new, |key, name| {
            names.push((key, name.to_owned()));
        });
        (gone, names)
    }

    fn keys(threads: &mut Threads) -> Vec<ThreadKey> {
        threads.iter_mut().map(|thread| thread.key).collect()
    }

    fn exact(name: &str) -> ThreadSelection {
        ThreadSelection::Named(ThreadNames::Exact(vec![name.to_owned()]))
    }

    #[test]
    fn a_thread_is_taken_up_once_and_let_go_when_it_ends() {
        let sleeper = sleeper("once");
        let tid = sleeper.tid;
        let mut threads = Threads::new(ThreadSelection::Tids(vec![tid, Tid::new(i32::MAX)]));
        let key = ThreadKey { tid, serial: 1 };
        let (gone, names) = look(&mut threads, 1);
        assert!(gone.is_empty());
        assert_eq!(names, [(key, "once".to_owned())]);
        assert_eq!(keys(&mut threads), [key]);
        sleeper.end();
        assert_eq!(look(&mut threads, 2).0.len(), 1);
        assert!(keys(&mut threads).is_empty());
    }

    #[test]
    fn later_births_join_and_our_own_never_do() {
        let mut threads = Threads::new(ThreadSelection::All);
        look(&mut threads, 1);
        let sleeper = sleeper("later");
        let before = sleeper.tid;
        assert!(!keys(&mut threads).iter().any(|key| key.tid == before));
        threads.look(MonotonicNanos(2), || vec![current_tid()], |_, _| ());
        let found = keys(&mut threads);
        assert!(found.iter().any(|key| key.tid == before));
        assert!(found.iter().all(|key| key.tid != current_tid()));
        let ended = sleeper.end();
        let (gone, _) = look(&mut threads, 3);
        assert!(gone.iter().any(|thread| thread.key.tid == ended));
    }

    #[test]
    fn an_id_that_is_given_again_is_another_thread() {
        let sleeper = sleeper("again");
        let mut threads = Threads::new(exact("again"));
        look(&mut threads, 1);
        let [first] = keys(&mut threads)[..] else { panic!() };
        // As if the thread that was met had begun at another time, and its file were gone with it.
        for thread in threads.iter_mut() {
            thread.started += 1;
            thread.ran = true;
            thread.syscall = task::SyscallFile::open(Tid::new(i32::MAX));
        }
        let (gone, _) = look(&mut threads, 2);
        assert_eq!(gone.len(), 1);
        let [second] = keys(&mut threads)[..] else { panic!() };
        assert_eq!(first.tid, second.tid);
        assert_ne!(first.serial, second.serial);
        sleeper.end();
    }

    #[test]
    fn the_name_of_now_decides_and_a_thread_stays_one() {
        const SECOND: u64 = limits::NAMES_CHECK_NANOS;
        let sleeper = sleeper("first-name");
        let mut threads = Threads::new(exact("SECOND-NAME"));
        look(&mut threads, 1);
        assert!(keys(&mut threads).is_empty());
        sleeper.rename("second-name");
        look(&mut threads, 2);
        let [key] = keys(&mut threads)[..] else { panic!() };
        sleeper.rename("third-name");
        let (gone, names) = look(&mut threads, 3);
        assert!(gone.is_empty() && keys(&mut threads).is_empty());
        assert_eq!(names, [(key, "third-name".to_owned())]);
        sleeper.rename("second-name");
        // Older than a second: its name is read once a second.
        look(&mut threads, SECOND + 2);
        assert!(keys(&mut threads).is_empty());
        look(&mut threads, SECOND + 3);
        assert_eq!(keys(&mut threads), [key]);
        sleeper.end();
    }
}
