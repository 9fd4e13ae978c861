//! The interpreter's own view of a thread's frames: what a new thread begins with, and what a shadow stack is compared with.
//!
//! **Problem.** A shadow stack is right when every event came. A thread that is first seen in the middle of its work has sent none for the functions
//! that already run, and a bug of an interpreter, or another tool that meddles with our callbacks, can lose one later.
//!
//! **Algorithm.** The public frame API says what runs, at an event of the thread itself, with the interpreter's lock held. A sample asks for such an audit
//! at the thread's next enter event, at most ten times a second, by making that event take the long way: the short way does not look for
//! it. Entries that are not among the interpreter's frames are *wrong*: they are counted and taken out. Frames that have no entry are
//! *missing*: a profile lacks them, which is no lie; they are counted apart. Two kinds of frames are missing by right: a generator that
//! delegates (`yield from`, `await`) while an exception is thrown through it is on the interpreter's list although nothing runs it, and
//! CPython sends no events while a `sys.settrace` function runs.
//!
//! **Placing.** Frames that ran before the first event have no anchor. When that event comes from the outermost eval frame of the thread's whole
//! native stack, all frames run in that one. When there is one eval frame further out, and among the frames `threading.Thread._bootstrap_inner` with the
//! `run` that it calls through C (3.14), the outer one runs all up to that. Otherwise nothing public tells which of the eval frames runs which Python frame (one eval
//! frame runs any number, and one that is letting go of its last frame's variables runs none), so they stay without an anchor until an
//! audit or their end. A generator among them may be one that only delegates: it and all frames inside it stay without.

use pyo3_ffi::{PyFrameObject, PyObject};

use super::api::Api;
use super::calibrate::callers_of_this;
use super::context::tag;
use super::greenlets;
use super::live::Live;
use crate::limits::{AUDIT_DISAGREEMENTS, SEEDED_FRAMES, WRONG_STACK_FUNCTIONS};
use crate::model::{CodeId, CodeInfo};
use crate::shadow::ShadowStack;

/// One frame of the interpreter's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Running {
    /// See [`super::context::tag`].
    pub(super) tag: u32,
    /// Whether it belongs to a generator or coroutine.
    pub(super) is_generator: bool,
}

/// Shows the calling thread's frames, innermost first, with their code objects, which are borrowed. `false` when these are not all: there were more than
/// [`SEEDED_FRAMES`], or memory ran out. Needs the interpreter's lock, and that no Python error is pending; runs no Python code.
pub(super) fn each_frame(api: &Api, mut visit: impl FnMut(*mut PyFrameObject, *mut PyObject)) -> bool {
    let mut left = SEEDED_FRAMES;
    // SAFETY: the lock is held. The first frame is borrowed from the thread, so a reference is taken; `PyFrame_GetBack` and `PyFrame_GetCode`
    // give new references. Each is given back exactly once.
    unsafe {
        let mut frame = (api.PyEval_GetFrame)();
        if frame.is_null() {
            // At an event something runs, so it could not be shown.
            return false;
        }
        (api.Py_IncRef)(frame.cast());
        while !frame.is_null() && left > 0 {
            let code = (api.PyFrame_GetCode)(frame).cast::<PyObject>();
            visit(frame, code);
            (api.Py_DecRef)(code);
            let back = (api.PyFrame_GetBack)(frame);
            (api.Py_DecRef)(frame.cast());
            frame = back;
            left -= 1;
        }
        if !frame.is_null() {
            (api.Py_DecRef)(frame.cast());
        }
        // The interpreter makes the objects that stand for frames when they are asked for.
        let error = (api.PyErr_GetRaisedException)();
        if !error.is_null() {
            (api.Py_DecRef)(error);
        }
        frame.is_null() && error.is_null()
    }
}

/// Whether a frame that [`each_frame`] shows belongs to a generator or coroutine.
pub(super) fn is_generator(api: &Api, frame: *mut PyFrameObject) -> bool {
    // SAFETY: the lock is held and the frame is alive; a new reference, given back at once, to an object that its frame keeps alive.
    unsafe {
        let generator = (api.PyFrame_GetGenerator)(frame);
        if !generator.is_null() {
            (api.Py_DecRef)(generator);
        }
        // Documented is NULL for a frame without one; 3.14 and 3.15 give None.
        !generator.is_null() && generator != api.none
    }
}

/// How a shadow stack and the interpreter's list differ.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Verdict {
    /// Entries, by index from the outermost, that the interpreter does not run there.
    wrong: Vec<usize>,
    /// Frames without an entry that have no good reason for it.
    missing: u64,
    /// Generators without an entry.
    delegating: u64,
}

/// Compares, both outermost first. What both have in the same order, from either end, is right; `more_inside` says that the shadow stack has hidden
/// frames, so that its inner end means nothing.
fn compare(shadow: &[u32], running: &[Running], more_inside: bool) -> Verdict {
    let same = |(entry, frame): (&u32, &Running)| *entry == frame.tag;
    let outer = shadow.iter().zip(running).take_while(|pair| same(*pair)).count();
    let (shadow_rest, running_rest) = (
        shadow.get(outer..).unwrap_or_default(),
        running.get(outer..).unwrap_or_default(),
    );
    let inner = if more_inside {
        0
    } else {
        let pairs = shadow_rest.iter().rev().zip(running_rest.iter().rev());
        pairs.take_while(|pair| same(*pair)).count()
    };
    let entries = shadow_rest.iter().take(shadow_rest.len() - inner);
    let mut frames = running_rest.iter().take(running_rest.len() - inner).peekable();
    let mut verdict = Verdict::default();
    let miss = |verdict: &mut Verdict, frame: &Running| {
        let counter = if frame.is_generator {
            &mut verdict.delegating
        } else {
            &mut verdict.missing
        };
        *counter += 1;
    };
    for (index, entry) in entries.enumerate() {
        if frames.clone().any(|frame| frame.tag == *entry) {
            for frame in frames.by_ref() {
                if frame.tag == *entry {
                    break;
                }
                miss(&mut verdict, frame);
            }
        } else {
            verdict.wrong.push(outer + index);
        }
    }
    if !more_inside {
        frames.for_each(|frame| miss(&mut verdict, frame));
    }
    verdict
}

/// Of two entries of one code object, next to each other but for wrong ones, the comparison takes the inner one for wrong. Where the outer one has no anchor and the
/// inner one has, and a generator runs, it is the other way round: an event told that the generator goes on, and when the thread was first seen it only passed an exception on. Nothing else goes on with
/// an event that was there before without one.
fn rather_without_a_place(wrong: &mut [usize], entries: &[(u32, bool)], running: &[Running]) {
    for place in 0..wrong.len() {
        let Some(&index) = wrong.get(place) else { return };
        let Some(&(tag, true)) = entries.get(index) else {
            continue;
        };
        if !running.iter().any(|frame| frame.tag == tag && frame.is_generator) {
            continue;
        }
        let outer = (0..index).rev().find(|outer| !wrong.contains(outer));
        if let Some(outer) = outer
            && entries.get(outer) == Some(&(tag, false))
            && let Some(wrong) = wrong.get_mut(place)
        {
            *wrong = outer;
        }
    }
}

/// Audits the calling thread's stack at an enter event of the code object `code` from the eval frame at `anchor`, before that is entered.
pub(super) fn audit(live: &Live, shadow: &ShadowStack, code: usize, anchor: u64) {
    // What this very event proves stale is counted as such and is no disagreement.
    shadow.drop_deeper_than(anchor);
    let mut running = Vec::new();
    let mut innermost = true;
    let whole = each_frame(live.api, |frame, its_code| {
        let entering = std::mem::take(&mut innermost) && its_code.addr() == code;
        if !entering {
            running.push(Running {
                tag: tag(its_code.addr() as u64),
                is_generator: is_generator(live.api, frame),
            });
        }
    });
    if !whole {
        return;
    }
    running.reverse();
    let entries: Vec<(u32, bool)> = shadow.tags().collect();
    let tags: Vec<u32> = entries.iter().map(|(tag, _)| *tag).collect();
    let mut verdict = compare(&tags, &running, shadow.depth() as usize > tags.len());
    rather_without_a_place(&mut verdict.wrong, &entries, &running);
    // Without an anchor no sample shows it: it was on the interpreter's list when the thread was first seen, and has ended or begun anew since, without an event if it was a
    // generator that only passed an exception on.
    let shown = verdict
        .wrong
        .iter()
        .filter(|index| entries.get(**index).is_some_and(|(_, anchored)| *anchored));
    let shown = shown.count() as u64;
    let unplaced = verdict.wrong.len() as u64 - shown;
    live.audits.note([shown, unplaced, verdict.missing, verdict.delegating]);
    if shown > 0 {
        live.audits.keep_stack(|| stacks_as_text(live, shadow, &verdict.wrong));
    }
    if shown > 0 && shadow.count_disagreement() >= AUDIT_DISAGREEMENTS {
        greenlets::give_up(live, shadow);
    } else if !verdict.wrong.is_empty() {
        shadow.retain(|index| !verdict.wrong.contains(&index));
    } else if entries.iter().any(|(_, anchored)| !anchored) && tags.len() == running.len() {
        place(live, shadow, anchor, &running);
    }
}

/// What the shadow stack has, the entries that are wrong in brackets, and what runs, the event's own function included; outermost first.
fn stacks_as_text(live: &Live, shadow: &ShadowStack, wrong: &[usize]) -> String {
    let mut running = Vec::new();
    each_frame(live.api, |_, code| running.push(code.addr() as u64));
    let codes = live.codes.lock();
    let entries = shadow
        .codes()
        .enumerate()
        .map(|(index, id)| match wrong.contains(&index) {
            true => format!("[{}]", codes.name_of(id)),
            false => codes.name_of(id),
        });
    let running = running.iter().rev().map(|address| {
        let id = codes.find(*address);
        id.map_or_else(|| "?".to_owned(), |id| codes.name_of(id))
    });
    let inner = |names: Vec<String>| {
        let left_out = names.len().saturating_sub(WRONG_STACK_FUNCTIONS);
        names.into_iter().skip(left_out).collect::<Vec<_>>().join(" > ")
    };
    format!("{} ran {}", inner(entries.collect()), inner(running.collect()))
}

/// How many frames a thread has before its `run`, where those run in an eval frame of their own. Other functions that `_bootstrap_inner` calls run in its own one, which
/// may call Python through C as well: so what follows must be a `run`, or nothing but the event's own function.
fn frames_before_run(live: &Live, shadow: &ShadowStack) -> Option<usize> {
    if !live.layout.threads_run_in_a_context {
        return None;
    }
    let ids: Vec<CodeId> = shadow.codes().collect();
    let codes = live.codes.lock();
    let is = |id: &CodeId, wanted: &dyn Fn(&CodeInfo) -> bool| codes.info(*id).is_some_and(wanted);
    let frames = 1 + ids.iter().position(|id| {
        is(id, &|info| {
            info.module == "threading" && info.qualified_name == "Thread._bootstrap_inner"
        })
    })?;
    let next = ids.get(frames);
    next.is_none_or(|id| is(id, &|info| info.qualified_name.ends_with(".run")))
        .then_some(frames)
}

/// Gives the frames without an anchor the one of this event, if all of them must have it; see the module's text. `running` is what runs,
/// outermost first, as it stands on the shadow stack.
pub(super) fn place(live: &Live, shadow: &ShadowStack, anchor: u64, running: &[Running]) {
    let sure = running.iter().take_while(|frame| !frame.is_generator).count();
    if sure == 0 {
        return;
    }
    let mut chain = Vec::with_capacity(64);
    let whole = callers_of_this(&*live.walk, &mut chain);
    let beyond = whole.then(|| live.eval_frames.beyond(anchor, &chain, &*live.walk));
    // How many frames run further out, and where.
    let outside = match beyond.flatten().as_deref() {
        Some([]) => Some((anchor, 0)),
        Some([outer]) => frames_before_run(live, shadow)
            .filter(|frames| *frames <= sure)
            .map(|frames| (*outer, frames)),
        _ => None,
    };
    let Some((outer, frames)) = outside else {
        shadow.try_from_further_out(anchor);
        return;
    };
    let placed = shadow.place(outer, frames) + shadow.place(anchor, sure);
    live.audits.note_placed(u64::from(placed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(tags: &[i32]) -> Vec<Running> {
        let of = |tag: &i32| Running {
            tag: tag.unsigned_abs(),
            is_generator: *tag < 0,
        };
        tags.iter().map(of).collect()
    }

    fn differences(shadow: &[u32], frames: &[i32]) -> (Vec<usize>, u64, u64) {
        let verdict = compare(shadow, &running(frames), false);
        (verdict.wrong, verdict.missing, verdict.delegating)
    }

    #[test]
    fn equal_stacks_agree() {
        assert_eq!(differences(&[], &[]), (vec![], 0, 0));
        assert_eq!(differences(&[1, 2, 1], &[1, -2, 1]), (vec![], 0, 0));
    }

    #[test]
    fn entries_that_do_not_run_are_wrong() {
        assert_eq!(differences(&[1, 2], &[1]), (vec![1], 0, 0));
        assert_eq!(differences(&[9, 1, 2], &[1, 2]), (vec![0], 0, 0));
        assert_eq!(differences(&[1, 9, 2, 8, 3], &[1, 2, 3]), (vec![1, 3], 0, 0));
        assert_eq!(differences(&[1, 2, 3], &[]), (vec![0, 1, 2], 0, 0));
    }

    #[test]
    fn frames_without_entry_are_missing_or_delegating() {
        assert_eq!(differences(&[1, 3], &[1, 2, 3]), (vec![], 1, 0));
        assert_eq!(differences(&[1, 3], &[1, -2, 3]), (vec![], 0, 1));
        assert_eq!(differences(&[], &[1, -2]), (vec![], 1, 1));
    }

    #[test]
    fn both_at_once_are_told_apart() {
        assert_eq!(differences(&[1, 9, 4], &[1, 2, 4]), (vec![1], 1, 0));
        assert_eq!(differences(&[2, 1], &[1, 2]), (vec![1], 1, 0));
    }

    #[test]
    fn of_two_entries_of_one_function_the_one_without_a_place_is_wrong() {
        let of = |wrong: &[usize], entries: &[(u32, bool)], tags: &[i32]| {
            let mut wrong = wrong.to_vec();
            rather_without_a_place(&mut wrong, entries, &running(tags));
            wrong
        };
        let rather = |wrong: &[usize], entries: &[(u32, bool)]| of(wrong, entries, &[1, -2]);
        assert_eq!(rather(&[2], &[(1, true), (2, false), (2, true)]), [1]);
        assert_eq!(rather(&[2, 3], &[(1, true), (2, false), (9, true), (2, true)]), [2, 1]);
        assert_eq!(rather(&[2], &[(1, true), (2, true), (2, true)]), [2]);
        assert_eq!(rather(&[2], &[(2, false), (1, false), (2, true)]), [2]);
        assert_eq!(rather(&[1], &[(2, false), (2, false)]), [1]);
        // A function that is no generator was entered twice, and its second end was not heard of.
        assert_eq!(of(&[2], &[(1, true), (2, false), (2, true)], &[1, 2]), [2]);
    }

    #[test]
    fn beyond_hidden_frames_nothing_is_missing() {
        assert_eq!(compare(&[1, 2], &running(&[1, 2, 3, 4]), true), Verdict::default());
        assert_eq!(compare(&[1, 9], &running(&[1, 2, 3, 4]), true).wrong, [1]);
    }
}
