//! The interpreter's frames as they lie in memory, readable at any instant of their thread, in a signal handler too.
//!
//! The public API cannot be called in a handler, so this reads CPython's own structures, whose layout is nobody's promise. Therefore no offset is
//! written down here that can be found: [`Layout::find`] looks for known values in known objects, and the tests compare what [`walk`] finds with the public
//! API's answer at thousands of places before its word is taken for anything.

use super::interpreter::{Interpreter, Object};

/// One frame, innermost first in a list of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// See [`identity`]; 0 for an entry.
    pub identity: u64,
    /// For the mark that an evaluation of the interpreter leaves below its first frame: where it is on the C stack. Else 0.
    pub entry: u64,
    pub is_generator: bool,
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// In the thread state: the current frame, or a pointer to a pointer to it (3.12).
    current: usize,
    indirect: bool,
    /// In a frame.
    owner: usize,
    /// The least value of `owner` that stands for an entry.
    entry: u8,
    /// In a code object.
    name: usize,
    line: usize,
    /// In a str: its length, and its characters if all are ASCII.
    length: usize,
    characters: usize,
}

/// What tells a function apart: its qualified name and first line.
pub fn identity(name: &[u8], line: u32) -> u64 {
    // FNV-1a.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, step);
    line.to_le_bytes().iter().fold(hash, step).max(1)
}

/// # Safety
/// `address + offset` must be readable.
unsafe fn word(address: u64, offset: usize) -> u64 {
    // SAFETY: the caller's.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address as usize + offset).read_unaligned() }
}

/// # Safety
/// The first `until` bytes at `address` must be readable.
unsafe fn offset_of(address: u64, value: u64, until: usize) -> Option<usize> {
    // SAFETY: the caller's.
    (0..until)
        .step_by(8)
        .find(|offset| unsafe { word(address, *offset) } == value)
}

impl Layout {
    /// To be called by a Python function of the given first line, whose code object and name are given, with the lock held.
    pub fn find(python: &Interpreter, version: (u32, u32), code: Object, name: Object, line: u32) -> Layout {
        // SAFETY: the lock is held; a frame object (`PyFrameObject`, 24 bytes: two words of every object, the caller, the frame), the thread
        // state and a code object are larger than what is looked at of them.
        unsafe {
            let thread = (python.PyGILState_GetThisThreadState)() as u64;
            let frame = word((python.PyEval_GetFrame)() as u64, 24);
            assert_eq!(word(frame, 0) & !7, code as u64, "a frame begins with its code object");
            let (current, indirect) = match offset_of(thread, frame, 256) {
                Some(offset) => (offset, false),
                None => {
                    let points_at_it = |offset: &usize| {
                        let pointer = word(thread, *offset);
                        pointer > 1 << 32
                            && pointer.is_multiple_of(8)
                            && pointer >> 47 == 0
                            && word(pointer, 0) == frame
                    };
                    // `cframe` (3.12) is the first pointer after the counters.
                    let offset = (48..=64).step_by(8).find(points_at_it);
                    (offset.expect("the thread state has no current frame"), true)
                }
            };
            // Behind the words of a frame: a stack top as a number and a return offset until 3.13, a pointer and a return offset since.
            let (owner, entry) = if version < (3, 14) { (70, 3) } else { (74, 3) };
            let line_at = (0..256)
                .step_by(4)
                .find(|offset| word(code as u64, *offset) as u32 == line);
            Layout {
                current,
                indirect,
                owner,
                entry,
                name: offset_of(code as u64, name as u64, 256).expect("a code object has no name"),
                line: line_at.expect("a code object has no line"),
                length: 16,
                characters: 40,
            }
        }
    }
}

/// The frames of the thread with this state, innermost first. Only on that thread, at any instant. The number of frames, at most `out.len()`; `None` at an
/// instant at which they cannot be told.
///
/// # Safety
/// `thread` is the living state of the calling thread.
pub unsafe fn walk(layout: &Layout, thread: u64, out: &mut [Frame]) -> Option<usize> {
    let mut count = 0;
    // SAFETY: a thread's frames change only by what the thread itself does, and each link is complete before it is linked, but for what
    // `begun` looks at.
    unsafe {
        let mut frame = word(thread, layout.current);
        if layout.indirect {
            if !begun(layout, frame) {
                return None;
            }
            frame = word(frame, 0);
        }
        while frame != 0 && count < out.len() {
            let owner = std::ptr::with_exposed_provenance::<u8>(frame as usize + layout.owner).read();
            let code = word(frame, 0) & !7;
            if owner >= layout.entry {
                out[count] = Frame {
                    entry: frame,
                    ..Frame::default()
                };
                count += 1;
            } else {
                let (name, line) = (word(code, layout.name), word(code, layout.line) as u32);
                // Frames without a name or a line are the interpreter's own (around an inlined `__init__`).
                if name != 0 && line != 0 {
                    let characters = std::slice::from_raw_parts(
                        std::ptr::with_exposed_provenance::<u8>(name as usize + layout.characters),
                        (word(name, layout.length) as usize).min(512),
                    );
                    out[count] = Frame {
                        identity: identity(characters, line),
                        entry: 0,
                        is_generator: owner == 1,
                    };
                    count += 1;
                }
            }
            frame = word(frame, 8);
        }
    }
    Some(count)
}

/// 3.12 makes an evaluation's record known (two words: the current frame, and the caller's record) before it fills it. Whether this one has been filled:
/// its innermost frames lead to a mark beside the record, which leads to the caller's current frame.
fn begun(layout: &Layout, record: u64) -> bool {
    let mut frame = guarded(record);
    for _ in 0..2_000 {
        let Some(at) = frame.filter(|at| *at != 0) else {
            return false;
        };
        let Some(owner) = guarded(at + (layout.owner as u64 & !7)) else {
            return false;
        };
        if (owner >> (layout.owner % 8 * 8)) as u8 >= layout.entry {
            return at.abs_diff(record) < 512 && guarded(at + 8) == guarded(record + 8).and_then(guarded);
        }
        frame = guarded(at + 8);
    }
    false
}

/// The word at an address that may be anything.
fn guarded(address: u64) -> Option<u64> {
    let mut value = 0_u64;
    let here = libc::iovec {
        iov_base: (&raw mut value).cast(),
        iov_len: 8,
    };
    let there = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(address as usize),
        iov_len: 8,
    };
    // SAFETY: the kernel checks the foreign address; the own one is of eight bytes.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
    (copied == 8).then_some(value)
}
