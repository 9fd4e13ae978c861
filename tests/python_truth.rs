//! Python attribution against the truth: a real interpreter runs code of every kind, and wherever the program asks for it the shadow stack
//! is compared with the interpreter's own frames, and every anchor with the native stack.
//!
//! Each CPython runs in a child process of its own, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use endstone_spark::model::{CodeId, PythonPart, PythonState, StackEnd};
use endstone_spark::native::{self, SamplerOptions, ThreadSelection, Unwinder, current_modules_unwinder};
use endstone_spark::python::{Runtime, attach};
use endstone_spark::shadow::{ReadBuffer, ShadowRead, ShadowTable};
use endstone_spark::sys::thread::current_tid;
use interpreter::{Interpreter, Object};

/// One comparison: what the interpreter says, and what the shadow stack says.
struct Check {
    truth: Vec<String>,
    shadow: Result<(Vec<CodeId>, u32), ShadowRead>,
    /// Entries whose anchor is no native frame's.
    unplaced: usize,
    ordered: bool,
}

static PYTHON: OnceLock<Interpreter> = OnceLock::new();
static UNWINDER: OnceLock<Arc<Unwinder>> = OnceLock::new();
static CHECKS: Mutex<Vec<Check>> = Mutex::new(Vec::new());

/// Return addresses and stack pointers after the returns, from here outwards.
#[inline(never)]
fn unwind_here(frames: &mut Vec<(u64, u64)>) {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers at one point.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp);
    }
    assert_eq!(UNWINDER.get().unwrap().unwind(pc, sp, bp, frames), StackEnd::Root);
}

unsafe extern "C" fn check(_module: Object, _nothing: Object) -> Object {
    let python = PYTHON.get().unwrap();
    let mut buffer = ReadBuffer::new();
    let read = ShadowTable::global().read(current_tid(), &mut buffer);
    let mut frames = Vec::new();
    unwind_here(&mut frames);
    let mut check = Check {
        truth: python.true_stack(),
        shadow: Err(read),
        unplaced: 0,
        ordered: true,
    };
    if let ShadowRead::Frames { count, hidden } = read {
        let entries = buffer.entries(count);
        check.unplaced = entries
            .iter()
            .filter(|entry| !frames.iter().any(|frame| frame.1 == entry.anchor))
            .count();
        check.ordered = entries.is_sorted_by(|outer, inner| outer.anchor >= inner.anchor);
        check.shadow = Ok((entries.iter().map(|entry| entry.code).collect(), hidden));
    }
    CHECKS.lock().unwrap().push(check);
    python.int(0)
}

/// The number of checks, and a text for each that failed.
fn judge(names: &HashMap<CodeId, String>) -> (usize, Vec<String>) {
    let checks = std::mem::take(&mut *CHECKS.lock().unwrap());
    let mut wrong = Vec::new();
    for check in &checks {
        match &check.shadow {
            Err(read) => wrong.push(format!("{read:?} in {:?}", check.truth)),
            Ok((codes, hidden)) => {
                let seen: Vec<&str> = codes
                    .iter()
                    .map(|code| names.get(code).map_or("?", String::as_str))
                    .collect();
                let deep = check.truth.len().saturating_sub(256);
                if seen != check.truth[..check.truth.len() - deep] || *hidden as usize != deep {
                    wrong.push(format!("truth  {:?}\n  shadow {seen:?} and {hidden}", check.truth));
                } else if check.unplaced > 0 || !check.ordered {
                    wrong.push(format!("{} of {seen:?} have no native frame", check.unplaced));
                }
            }
        }
    }
    (checks.len(), wrong)
}

/// What the real sampler saw.
#[derive(Default, Debug)]
struct Sampled {
    samples: u64,
    whole: u64,
    with_python: u64,
    torn: u64,
    placed: u64,
    unplaced: u64,
    disordered: u64,
}

/// Samples this thread while `act` runs, and looks for each anchor among the native frames of the same sample.
fn sample<T>(act: impl FnOnce() -> T) -> (T, Sampled) {
    let options = SamplerOptions {
        interval_nanos: 500_000,
        threads: ThreadSelection::Tids(vec![current_tid()]),
        ignore_sleeping: false,
    };
    let (mut sampler, mut source) = native::start(options, ShadowTable::global()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut seen = Sampled::default();
        let mut visit = |sample: &endstone_spark::model::Sample<'_>| {
            seen.samples += 1;
            if sample.end != StackEnd::Root || sample.omitted > 0 {
                return;
            }
            seen.whole += 1;
            match sample.python {
                PythonPart::None => {}
                PythonPart::Torn => seen.torn += 1,
                PythonPart::Frames { entries, .. } => {
                    seen.with_python += 1;
                    let placed = entries
                        .iter()
                        .filter(|entry| sample.native.iter().any(|frame| frame.cfa == entry.anchor));
                    let placed = placed.count() as u64;
                    seen.placed += placed;
                    seen.unplaced += entries.len() as u64 - placed;
                    seen.disordered += u64::from(!entries.is_sorted_by(|outer, inner| outer.anchor >= inner.anchor));
                }
            }
        };
        while source.drain(std::time::Duration::from_millis(100), &mut visit) {}
        seen
    });
    let result = act();
    sampler.stop();
    (result, reader.join().unwrap())
}

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = Interpreter::start(&library);
    PYTHON.set(python).ok().unwrap();
    python.add_function(c"check", check);
    python.run(include_str!("programs/truth.py"));
    // All libraries that the program needs are loaded before the unwinder looks at them.
    python.run(
        "import _asyncio, _json, _heapq, _bisect, _contextvars, _datetime, _struct, _random, _socket, select, math",
    );
    let unwinder = UNWINDER.get_or_init(|| Arc::new(current_modules_unwinder()));
    let runtime = Runtime::discover().unwrap();
    for round in 1..=2 {
        let attribution = python.unlocked(|| {
            let walk: Arc<Unwinder> = Arc::clone(unwinder);
            attach(runtime, ShadowTable::global(), walk).unwrap()
        });
        println!(
            "{} round {round}: distances {:?}",
            runtime.version(),
            attribution.anchor_distances()
        );
        python.run("everything()\non_threads()\neverything()");
        let ((), sampled) = sample(|| python.run("unchecked(2)"));
        let names = attribution
            .freeze()
            .into_iter()
            .map(|(id, info)| (id, info.qualified_name))
            .collect();
        let figures = attribution.diagnostics();
        python.unlocked(|| attribution.detach()).unwrap();
        let (checks, wrong) = judge(&names);
        println!("{checks} checks, {} wrong; {sampled:?}; {figures:?}", wrong.len());
        for text in wrong.iter().take(10) {
            println!("{text}");
        }
        assert!(checks > 2_000, "the program did not run");
        assert!(wrong.is_empty());
        assert!(
            sampled.with_python > 100 && sampled.placed > 1_000,
            "the sampler did not run"
        );
        assert_eq!((sampled.unplaced, sampled.disordered, sampled.torn), (0, 0, 0));
        assert_eq!(figures.state, PythonState::Active);
        let audits = figures.audits;
        assert!(audits.made >= 5, "samples ask for audits: {audits:?}");
        assert_eq!((audits.disagreed, audits.missing_frames), (0, 0), "{audits:?}");
        python.run("import sys\nassert all(sys.monitoring.get_tool(i) is None for i in range(6))");
    }
    println!("child is done");
}

#[test]
fn shadow_stacks_are_true_on_every_python() {
    pythons::in_children();
}
