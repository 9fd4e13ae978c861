//! Native stacks beside which no Python frame may stand.
//!
//! **Problem.** A library that runs several stacks of calls in one thread by copying them in and out of the same addresses (greenlet) makes anchors mean
//! nothing. Python's side gives such a thread up at the first Python function that runs there, but a sample may come before that.
//!
//! **Algorithm.** What runs on a swapped stack was begun by that library, so the native stack goes through its code. Once such a library is loaded, Python
//! frames are shown only beside a native stack that was followed to the thread's first frame, whole, without meeting it. The library may have been loaded
//! a moment before and not be known yet: from when its package is imported, which Python's side sees earlier, code of no known module counts as its.
//!
//! **Price.** Nothing where no such library is loaded, which is told by its file's name.

use std::collections::HashSet;

use super::queue::Stack;
use crate::model::{Module, ModuleId, StackEnd};

/// How the file names of such libraries begin.
const NAMES: [&str; 1] = ["_greenlet."];

/// The libraries that swap stacks.
#[derive(Debug, Default)]
pub(super) struct Swaps {
    libraries: HashSet<ModuleId>,
}

impl Swaps {
    /// Takes notice of a module.
    pub(super) fn note(&mut self, module: &Module) {
        let name = module.path.file_name().unwrap_or_default().as_encoded_bytes();
        if NAMES.iter().any(|start| name.starts_with(start.as_bytes())) {
            self.libraries.insert(module.id);
        }
    }

    /// Whether Python frames may stand beside this stack. `imported`: the package of such a library has been imported by now.
    pub(super) fn allow(&self, stack: &Stack, imported: bool) -> bool {
        let whole = || stack.omitted == 0 && stack.end == StackEnd::Root;
        let may_swap = |id: ModuleId| id == ModuleId::NONE || self.libraries.contains(&id);
        let met = || stack.frames.iter().any(|frame| may_swap(frame.module));
        !imported && self.libraries.is_empty() || whole() && !met()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::native::unwind::RawFrame;

    fn module(id: u32, path: &str) -> Module {
        Module {
            id: ModuleId::new(id),
            path: PathBuf::from(path),
            avma: 0..1,
            base_svma: 0,
            build_id: None,
            device: 0,
            inode: 0,
        }
    }

    fn stack(modules: &[u32], end: StackEnd) -> Stack {
        let frame = |id: &u32| RawFrame {
            module: ModuleId::new(*id),
            address: 1,
            cfa: 1,
        };
        Stack {
            frames: modules.iter().map(frame).collect(),
            end,
            ..Stack::new()
        }
    }

    #[test]
    fn only_whole_stacks_that_meet_no_swapping_library_carry_python_frames_beside_one() {
        let mut swaps = Swaps::default();
        swaps.note(&module(1, "/usr/lib/libpython3.13.so.1.0"));
        assert!(swaps.allow(&stack(&[1, 2], StackEnd::NoUnwindData), false));
        swaps.note(&module(2, "/x/greenlet/_greenlet.cpython-313-x86_64-linux-gnu.so"));
        assert!(swaps.allow(&stack(&[1, 3], StackEnd::Root), false));
        assert!(!swaps.allow(&stack(&[1, 2, 3], StackEnd::Root), false));
        assert!(!swaps.allow(&stack(&[1, 3], StackEnd::NoUnwindData), false));
        let cut = Stack {
            omitted: 1,
            ..stack(&[1, 3], StackEnd::Root)
        };
        assert!(!swaps.allow(&cut, false));
    }

    #[test]
    fn a_swapping_library_that_is_not_known_yet_is_reckoned_with_from_its_package_on() {
        let swaps = Swaps::default();
        assert!(swaps.allow(&stack(&[1, 0, 3], StackEnd::Root), false));
        assert!(!swaps.allow(&stack(&[1, 0, 3], StackEnd::Root), true));
        assert!(!swaps.allow(&stack(&[1, 0], StackEnd::UnknownModule), true));
        assert!(swaps.allow(&stack(&[1, 3], StackEnd::Root), true));
    }
}
