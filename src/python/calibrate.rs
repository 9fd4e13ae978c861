//! Where a callback's eval frame is.
//!
//! **Problem.** A Python frame is to be placed at the native frame that evaluates it. A callback knows its own stack pointer, not that frame.
//!
//! **Algorithm.** CPython calls the callback of one event always through the same chain of C calls, so the distance from the callback's stack
//! pointer to the eval frame's canonical frame address (CFA) is a constant of the interpreter build and the event. It is measured once per
//! session, without symbols: `calibrate.py` runs trivial functions under monitoring, and the stack is unwound inside the enter and the leave
//! callback of one activation. Seen from the root both chains are equal up to the eval frame's caller, because the eval frame is the same and has not
//! moved; the eval frame itself is the first that differs, as it has called on from two places. (Seen from the leaf the callbacks' nearest
//! callers can be equal too.)
//!
//! **Verification.** Each event's distance must be the same in every pair, from several depths of the C stack, with functions that return
//! constants and values, raise, yield and are thrown into. A wrong frame, one that a start and a return reach from the same place, is not reached
//! from there by an exception, so such pairs would disagree. Else there is no calibration and the session is native-only.
//!
//! **Assumption.** The unwinder is right about the interpreter's frames; the same unwinder places samples.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::monitoring::Event;
use super::objects::{PythonError, Refs};
use crate::limits::{ANCHOR_DISTANCE, CALIBRATION_EVENTS};

/// What is needed to know about native stacks.
pub trait StackWalk: Send + Sync {
    /// Unwinds from registers (instruction, stack and frame pointer) of the calling thread. Appends, from the inside out, each return address with
    /// the value of the stack pointer after that return. Whether the thread's first frame was reached.
    fn callers(&self, pc: u64, sp: u64, bp: u64, callers: &mut Vec<(u64, u64)>) -> bool;

    /// Where the function begins that holds this address, if that is known. Two parts of one function may count as two.
    fn function_of(&self, address: u64) -> Option<u64>;
}

/// Why no distances were found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum CalibrationError {
    #[error("the stack could not be unwound from a monitoring callback ({0} events)")]
    NoPairs(&'static str),
    #[error("the place of Python frames on the stack could not be verified ({0} events: {1} and {2} bytes)")]
    Contradiction(&'static str, u64, u64),
    #[error("the place of Python frames on the stack is implausible ({0} events: {1} bytes)")]
    Implausible(&'static str, u64),
    #[error(transparent)]
    Python(#[from] PythonError),
}

/// One event seen by a calibration callback.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    event: Event,
    code: u64,
    stack_pointer: u64,
    /// See [`StackWalk::callers`].
    chain: Vec<(u64, u64)>,
}

/// What one calibration collects.
struct Recorder<'a> {
    walk: &'a dyn StackWalk,
    seen: RefCell<Vec<Seen>>,
}

/// Address of the recorder, and the thread that may use it: events of other threads are none of the calibration's business.
static RECORDER: AtomicUsize = AtomicUsize::new(0);
static THREAD: AtomicUsize = AtomicUsize::new(0);

fn this_thread() -> usize {
    // SAFETY: pthread_self takes nothing and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Called by the calibration callbacks.
#[inline(never)]
pub(super) fn record(event: usize, code: u64, stack_pointer: u64) {
    // Acquire, with the Release store in `collect`: the recorder is whole. Only its own thread gets past this.
    if THREAD.load(Ordering::Acquire) != this_thread() {
        return;
    }
    // Relaxed: stored by this thread.
    let address = RECORDER.load(Ordering::Relaxed);
    let recorder = std::ptr::with_exposed_provenance::<Recorder<'_>>(address);
    // SAFETY: `collect` on this thread set it, and clears both before the recorder ends; null is not dereferenced.
    let Some(recorder) = (unsafe { recorder.as_ref() }) else {
        return;
    };
    let (Some(event), Ok(mut seen)) = (Event::ALL.get(event), recorder.seen.try_borrow_mut()) else {
        return;
    };
    if seen.len() >= CALIBRATION_EVENTS {
        return;
    }
    let mut chain = Vec::with_capacity(64);
    callers_of_this(recorder.walk, &mut chain);
    seen.push(Seen {
        event: *event,
        code,
        stack_pointer,
        chain,
    });
}

/// The callers of the function that calls this, see [`StackWalk::callers`].
#[inline(always)]
pub(super) fn callers_of_this(walk: &dyn StackWalk, chain: &mut Vec<(u64, u64)>) -> bool {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers at one point.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp,
            options(nomem, nostack, preserves_flags));
    }
    walk.callers(pc, sp, bp, chain)
}

/// Runs `act` on this thread and gives the events that its callbacks recorded, with a stack address between `act` and the thread's root.
fn collect<T>(walk: &dyn StackWalk, act: impl FnOnce() -> T) -> (T, Vec<Seen>, u64) {
    let recorder = Recorder {
        walk,
        seen: RefCell::new(Vec::new()),
    };
    // Relaxed: for this thread.
    RECORDER.store((&raw const recorder).expose_provenance(), Ordering::Relaxed);
    // Release, with the Acquire load in `record`.
    THREAD.store(this_thread(), Ordering::Release);
    let result = act();
    // Relaxed: this thread stops recording; no other ever passed the check.
    THREAD.store(0, Ordering::Relaxed);
    RECORDER.store(0, Ordering::Relaxed);
    let outside = (&raw const recorder).addr() as u64;
    (result, recorder.seen.into_inner(), outside)
}

/// Measures the distances. `on` and `off` switch monitoring with the calibration's callbacks. Needs the interpreter's lock.
pub(super) fn calibrate(
    refs: &mut Refs,
    walk: &dyn StackWalk,
    mut switch: impl FnMut(&mut Refs, bool) -> Result<(), PythonError>,
) -> Result<Calibration, CalibrationError> {
    let script = refs.run(include_str!("calibrate.py"), c"<spark calibration>")?;
    let run = refs.global(script, c"run")?;
    let run_deeper = refs.global(script, c"run_deeper")?;
    let codes = refs.global(script, c"codes")?;
    let mut known = Vec::new();
    for index in 0..4 {
        let index = refs.int(index)?;
        known.push(refs.method(codes, c"__getitem__", &[index])?.addr() as u64);
    }
    switch(refs, true)?;
    let (result, seen, outside) = collect(walk, || -> Result<(), PythonError> {
        refs.call(run, &[], "running the calibration")?;
        refs.call(run_deeper, &[], "running the calibration")?;
        Ok(())
    });
    switch(refs, false)?;
    result?;
    Ok(Calibration {
        distances: distances(&seen, &known, outside)?,
        eval_frames: EvalFrames::learn(&seen, &known, outside, walk),
    })
}

/// What a calibration finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Calibration {
    /// From a callback's stack pointer to its eval frame's CFA, by event.
    pub(super) distances: [u64; Event::COUNT],
    pub(super) eval_frames: EvalFrames,
}

/// How eval frames are told from other native frames: by the functions they and their callers run. In an ordinary build all eval frames run one function
/// (or a part that the compiler split off), called from a few; in a tail-call interpreter they run one of hundreds, all called from one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct EvalFrames {
    functions: Vec<u64>,
    callers: Vec<u64>,
}

impl EvalFrames {
    fn learn(seen: &[Seen], codes: &[u64], outside: u64, walk: &dyn StackWalk) -> Self {
        let mut found = EvalFrames::default();
        for (enter, leave) in pairs(seen, codes) {
            let Some(cfa) = eval_frame_cfa(&enter.chain, &leave.chain, outside) else {
                continue;
            };
            for side in [enter, leave] {
                let Some(caller) = side.chain.iter().position(|(_, sp)| *sp == cfa) else {
                    continue;
                };
                let function = |index: usize| walk.function_of(side.chain.get(index)?.0.wrapping_sub(1));
                found.functions.extend(caller.checked_sub(1).and_then(function));
                found.callers.extend(function(caller));
            }
        }
        for list in [&mut found.functions, &mut found.callers] {
            list.sort_unstable();
            list.dedup();
        }
        found
    }

    /// The CFAs of the eval frames further out than the one with the CFA `anchor`, from the inside out, on a stack that reaches the thread's root. `None`
    /// when they cannot be told.
    pub(super) fn beyond(&self, anchor: u64, chain: &[(u64, u64)], walk: &dyn StackWalk) -> Option<Vec<u64>> {
        if self.functions.is_empty() || self.callers.is_empty() {
            return None;
        }
        let caller = chain.iter().position(|(_, sp)| *sp == anchor)?;
        let runs = |(address, _): &(u64, u64), list: &[u64]| {
            let function = walk.function_of(address.wrapping_sub(1));
            function.is_some_and(|function| list.contains(&function))
        };
        // A frame may well be taken for an eval frame that is none; what must not happen is the reverse.
        let pairs = chain.get(caller..)?.windows(2);
        let found = pairs.filter_map(|pair| match pair {
            [frame, caller] if runs(frame, &self.functions) || runs(caller, &self.callers) => Some(caller.1),
            _ => None,
        });
        Some(found.collect())
    }
}

/// The eval frame's CFA, from the chains of the enter and the leave of one activation: the stack pointer after the return into the first
/// frame, seen from the root, from which on they are equal. Both must have been followed out of the interpreter, beyond `outside`: chains
/// that end early may be equal further in.
fn eval_frame_cfa(enter: &[(u64, u64)], leave: &[(u64, u64)], outside: u64) -> Option<u64> {
    if enter.last()?.1 <= outside || leave.last()?.1 <= outside {
        return None;
    }
    let both = enter.iter().rev().zip(leave.iter().rev());
    let common = both.take_while(|(one, other)| one == other).count();
    // Both must have frames of their own, or they were not seen from inside an eval frame.
    let inside = enter.len().min(leave.len()).checked_sub(common)?;
    if inside == 0 || common == 0 {
        return None;
    }
    enter.get(enter.len() - common).map(|(_, stack_pointer)| *stack_pointer)
}

fn name(event: Event) -> &'static str {
    event.name().to_str().unwrap_or("unknown")
}

/// Each enter with the leave that follows it, of the same one of the `codes`.
fn pairs<'a>(seen: &'a [Seen], codes: &'a [u64]) -> impl Iterator<Item = (&'a Seen, &'a Seen)> {
    seen.windows(2).filter_map(move |pair| match pair {
        [enter, leave]
            if enter.event.is_enter()
                && !leave.event.is_enter()
                && enter.code == leave.code
                && codes.contains(&enter.code) =>
        {
            Some((enter, leave))
        }
        _ => None,
    })
}

/// The distance of each event, from pairs of an enter and the leave that follows it of the same one of the `codes`.
fn distances(seen: &[Seen], codes: &[u64], outside: u64) -> Result<[u64; Event::COUNT], CalibrationError> {
    let mut found: [Option<u64>; Event::COUNT] = [None; Event::COUNT];
    for (enter, leave) in pairs(seen, codes) {
        let cfa =
            eval_frame_cfa(&enter.chain, &leave.chain, outside).ok_or(CalibrationError::NoPairs(name(enter.event)))?;
        for side in [enter, leave] {
            let distance = cfa.wrapping_sub(side.stack_pointer);
            if distance == 0 || distance > ANCHOR_DISTANCE {
                return Err(CalibrationError::Implausible(name(side.event), distance));
            }
            let Some(place) = found.get_mut(side.event as usize) else {
                continue;
            };
            match *place {
                Some(before) if before != distance => {
                    return Err(CalibrationError::Contradiction(name(side.event), before, distance));
                }
                _ => *place = Some(distance),
            }
        }
    }
    let mut distances = [0; Event::COUNT];
    for (event, (place, found)) in Event::ALL.into_iter().zip(distances.iter_mut().zip(found)) {
        *place = found.ok_or(CalibrationError::NoPairs(name(event)))?;
    }
    Ok(distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: [(u64, u64); 2] = [(0x100, 0x9000), (0x200, 0x9800)];

    /// An event `distance` below the eval frame's caller at `cfa`, through callees `inner`, called on from `from` in the eval frame.
    fn seen(event: Event, cfa: u64, distance: u64, inner: u64, from: u64) -> Seen {
        let caller = (0x77, cfa);
        let mut chain = vec![
            (inner, cfa - distance + 8),
            (inner + 1, cfa - 300),
            (from, cfa - 200),
            caller,
        ];
        chain.extend(ROOT);
        Seen {
            event,
            code: 5,
            stack_pointer: cfa - distance,
            chain,
        }
    }

    fn script(change: impl Fn(&mut Vec<Seen>)) -> Result<[u64; Event::COUNT], CalibrationError> {
        let mut events = Vec::new();
        for cfa in [0x8000, 0x7000] {
            for (enter, leave) in [
                (Event::Start, Event::Return),
                (Event::Start, Event::Unwind),
                (Event::Resume, Event::Yield),
                (Event::Throw, Event::Yield),
            ] {
                // Enter and leave share their nearest callees, as in CPython.
                events.push(seen(enter, cfa, 700 + enter as u64, 10, 1000 + enter as u64));
                events.push(seen(leave, cfa, 700 + leave as u64, 10, 2000 + leave as u64));
            }
        }
        change(&mut events);
        distances(&events, &[5], 0x9000)
    }

    #[test]
    fn distances_are_those_to_the_eval_frames_caller() {
        assert_eq!(script(|_| ()), Ok([700, 701, 702, 703, 704, 705]));
    }

    #[test]
    fn events_of_other_code_do_not_count() {
        let foreign = |events: &mut Vec<Seen>| {
            let mut other = seen(Event::Start, 0x8000, 999, 10, 11);
            other.code = 6;
            events.push(other.clone());
            other.event = Event::Return;
            events.push(other);
        };
        assert_eq!(script(foreign), Ok([700, 701, 702, 703, 704, 705]));
    }

    #[test]
    fn distances_that_differ_are_refused() {
        let moved = |events: &mut Vec<Seen>| {
            if let Some(last) = events.last_mut() {
                last.stack_pointer -= 16;
            }
        };
        assert_eq!(
            script(moved),
            Err(CalibrationError::Contradiction("PY_YIELD", 704, 720))
        );
    }

    #[test]
    fn a_wrong_frame_that_start_and_return_share_is_found_out_by_the_exception() {
        let shared_call_site = |events: &mut Vec<Seen>| {
            for event in events {
                if matches!(event.event, Event::Start | Event::Return) {
                    event.chain[2].0 = 1;
                    event.chain[1].0 = 40 + event.event as u64;
                }
            }
        };
        assert!(matches!(
            script(shared_call_site),
            Err(CalibrationError::Contradiction("PY_START", ..))
        ));
    }

    #[test]
    fn chains_that_end_inside_the_interpreter_give_nothing() {
        let cut = |events: &mut Vec<Seen>| events.iter_mut().for_each(|event| event.chain.truncate(2));
        assert_eq!(script(cut), Err(CalibrationError::NoPairs("PY_START")));
        assert_eq!(script(Vec::clear), Err(CalibrationError::NoPairs("PY_START")));
    }
}
