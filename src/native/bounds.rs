//! Where a thread's stack begins and ends.

use super::capture::StackBounds;
use super::thread::Thread;
use crate::limits;
use crate::model::MonotonicNanos;
use crate::sys::maps::{self, Mapping};
use crate::sys::{clock, task};

/// Finds threads' stacks. The list of mappings, some hundred lines, is kept for a moment: when a session begins, or many threads do, one list serves
/// them all.
#[derive(Debug)]
pub(super) struct StackFinder {
    process: i32,
    /// When the list was begun, and the list.
    mappings: Option<(MonotonicNanos, Vec<Mapping>)>,
}

impl StackFinder {
    pub(super) fn new(process: i32) -> Self {
        StackFinder {
            process,
            mappings: None,
        }
    }

    /// Looks the stack of a thread up that was seen with this stack pointer, if it is outside of what is known.
    pub(super) fn learn(&mut self, thread: &mut Thread, sp: u64, control_block: u64) {
        if thread.bounds.holds(sp) {
            return;
        }
        let is_main = thread.key.tid.get() == self.process;
        // A stack stays what it is from before its thread begins until that has ended: a list that is younger than the thread is good, an older one is not.
        let kept = self.mappings.as_ref().filter(|(read_at, _)| *read_at > thread.born);
        if let Some((_, mappings)) = kept {
            let found = bounds(mappings, is_main, sp, control_block);
            if found.holds(sp) {
                thread.bounds = found;
                return;
            }
        }
        let now = clock::monotonic();
        let looked_lately = thread
            .bounds_looked_at
            .is_some_and(|at| now.since(at) < limits::BOUNDS_CHECK_NANOS);
        if looked_lately {
            return;
        }
        thread.bounds_looked_at = Some(now);
        let Ok(mappings) = maps::mappings() else {
            return;
        };
        let found = bounds(&mappings, is_main, sp, control_block);
        if found.holds(sp) {
            thread.bounds = found;
        }
        self.mappings = Some((now, mappings));
    }

    /// Forgets the list.
    pub(super) fn forget(&mut self) {
        self.mappings = None;
    }
}

/// The bounds of the stack that holds `sp`, if it is the thread's own: the main thread's is the mapping that the kernel calls `[stack]`; that of any
/// other thread ends with its control block, which the C library places at the end of the stack it gave the thread (or was given for it). Only such a
/// mapping is sure to stay as long as the thread lives; fibers and alternate stacks are left unknown.
fn bounds(mappings: &[Mapping], is_main: bool, sp: u64, control_block: u64) -> StackBounds {
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
    // A stack in the heap that somebody gave a thread (`pthread_attr_setstack`): where it begins cannot be told.
    let in_heap = mapping.path.as_os_str() == "[heap]";
    if in_heap || !range.contains(&control_block) || control_block <= sp {
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
    fn a_stack_in_the_heap_has_no_known_end() {
        let mappings = [mapping(0x1000..0x9000, "[heap]")];
        assert_eq!(bounds(&mappings, false, 0x8000, 0x8f00), StackBounds::default());
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
}
