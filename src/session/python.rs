//! Python attribution as a session sees it.
//!
//! Attaching needs the interpreter's lock, which any C extension may hold for as long as it likes. So it runs on a worker of its own, and a session waits
//! only [`limits::ATTACH_WAIT_MILLIS`] for it before it begins natively; Python frames then appear as soon as the interpreter answers.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::limits;
use crate::model::{CodeId, CodeInfo, PythonDiagnostics, PythonState, StackEnd};
use crate::native;
use crate::python::{self, Attribution, Runtime, Unsupported};
use crate::shadow::ShadowTable;
use crate::sys::{Deadline, fault, thread};

#[derive(Debug)]
enum Side {
    /// Not attributed, or no longer.
    Off(Box<Ended>),
    /// A worker waits for the interpreter.
    Attaching { version: String },
    /// Frames are attributed.
    On(Attribution),
}

/// What is left of an attribution, or why there was none.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    pub(super) diagnostics: PythonDiagnostics,
    pub(super) codes: Vec<(CodeId, CodeInfo)>,
}

#[derive(Debug)]
struct Shared {
    side: Mutex<Side>,
    changed: Condvar,
    /// After which the interpreter is not waited for: the plugin is being disabled.
    deadline: Deadline,
}

/// Python attribution of one session, in whatever state it is.
#[derive(Clone, Debug)]
pub(super) struct PythonSide(Arc<Shared>);

/// Why a session has no Python frames after a bug of ours.
const PANICKED: &str = "an internal error of the profiler while it attached; the server is not affected";

/// Why a session has no Python frames that ended while it still waited.
const UNANSWERED: &str = "the session ended before the interpreter answered";

fn off(state: PythonState, version: &str) -> Side {
    let implementation = if version.is_empty() { "" } else { "CPython" };
    let diagnostics = PythonDiagnostics {
        state,
        version: version.to_owned(),
        implementation: implementation.to_owned(),
        ..PythonDiagnostics::default()
    };
    Side::Off(Box::new(Ended {
        diagnostics,
        codes: Vec::new(),
    }))
}

impl PythonSide {
    /// None, because the owner does not want it.
    pub(super) fn switched_off(why: &str) -> Self {
        PythonSide(Arc::new(Shared {
            side: Mutex::new(off(PythonState::Unsupported(why.to_owned()), "")),
            changed: Condvar::new(),
            deadline: Deadline::default(),
        }))
    }

    /// Attaches, if there is a Python that can be. Returns when it is attached, when it is clear that it will not be, or after a short wait.
    pub(super) fn attach(table: &'static ShadowTable, deadline: &Deadline) -> Self {
        let shared = |side| {
            Arc::new(Shared {
                side: Mutex::new(side),
                changed: Condvar::new(),
                deadline: deadline.clone(),
            })
        };
        let runtime = match Runtime::discover() {
            Ok(runtime) => runtime,
            Err(error) => {
                let side = match &error {
                    Unsupported::NoPython => off(PythonState::Absent, ""),
                    Unsupported::TooOld(version)
                    | Unsupported::Missing { version, .. }
                    | Unsupported::Version(version) => off(PythonState::Unsupported(error.to_string()), version),
                };
                return PythonSide(shared(side));
            }
        };
        let shared = shared(Side::Attaching {
            version: runtime.version().to_owned(),
        });
        let started = thread::spawn("spark-python", {
            let shared = Arc::clone(&shared);
            move || attach_now(runtime, table, &shared)
        });
        if let Err(error) = started {
            let why = format!("no thread could be started to attach to Python: {error}");
            *shared.side.lock() = off(PythonState::Unsupported(why), runtime.version());
        }
        let limit = Duration::from_millis(limits::ATTACH_WAIT_MILLIS);
        deadline.wait_while(&shared.changed, &mut shared.side.lock(), limit, |side| {
            matches!(side, Side::Attaching { .. })
        });
        PythonSide(shared)
    }

    /// Figures and state.
    pub(super) fn diagnostics(&self) -> PythonDiagnostics {
        match &*self.0.side.lock() {
            Side::Off(ended) => ended.diagnostics.clone(),
            Side::Attaching { version } => PythonDiagnostics {
                state: PythonState::Attaching,
                version: version.clone(),
                implementation: "CPython".to_owned(),
                ..PythonDiagnostics::default()
            },
            Side::On(attribution) => attribution.diagnostics(),
        }
    }

    /// Whether a callback has ended by a bug of ours.
    pub(super) fn has_failed(&self) -> bool {
        matches!(&*self.0.side.lock(), Side::On(attribution) if attribution.has_failed())
    }

    /// What code ids stand for, as far as it is known now.
    pub(super) fn codes(&self) -> Vec<(CodeId, CodeInfo)> {
        match &*self.0.side.lock() {
            Side::Off(ended) => ended.codes.clone(),
            Side::Attaching { .. } => Vec::new(),
            Side::On(attribution) => attribution.codes(),
        }
    }

    /// Looks after it, see [`Attribution::look_after`]; to be called about once a second. Does not wait.
    pub(super) fn look_after(&self) {
        if let Side::On(attribution) = &*self.0.side.lock() {
            attribution.look_after();
        }
    }

    /// Takes down what code ids stand for, then switches monitoring off and lets Python go. The names need no lock of the interpreter; the rest does, is
    /// done on a thread of its own however long that takes, and is waited for only [`limits::DETACH_WAIT_MILLIS`], and less when the plugin is being disabled. Every further call gives the same.
    pub(super) fn end(&self) -> Ended {
        let before = {
            let mut side = self.0.side.lock();
            let left = match &*side {
                Side::Off(ended) => return (**ended).clone(),
                Side::Attaching { version } => off(PythonState::Unsupported(UNANSWERED.to_owned()), version),
                Side::On(attribution) => Side::Off(Box::new(Ended {
                    diagnostics: attribution.diagnostics(),
                    codes: attribution.codes(),
                })),
            };
            std::mem::replace(&mut *side, left)
        };
        if let Side::On(attribution) = before {
            // Here if this thread holds the interpreter's lock: nobody else could get it then.
            if lock_is_held_here() {
                self.0.let_go(attribution);
            } else {
                let shared = Arc::clone(&self.0);
                // Without a thread the closure is dropped here, and the attribution with it, which detaches it just as well.
                if let Ok(worker) = thread::spawn("spark-python", move || shared.let_go(attribution)) {
                    worker.join_until(Duration::from_millis(limits::DETACH_WAIT_MILLIS), &self.0.deadline);
                }
            }
        }
        match &*self.0.side.lock() {
            Side::Off(ended) => (**ended).clone(),
            Side::Attaching { .. } | Side::On(_) => Ended::default(),
        }
    }

    /// The same, if the calling thread holds the interpreter's lock: while it waits for our worker, nobody else could get it.
    pub(super) fn end_if_lock_is_held_here(&self) {
        if lock_is_held_here() {
            self.end();
        }
    }
}

impl Shared {
    /// Lets Python go, and keeps the figures of the end: among them whether our callbacks were still in place.
    fn let_go(&self, attribution: Attribution) {
        attribution.freeze();
        let diagnostics = attribution.diagnostics();
        drop(attribution);
        if let Side::Off(ended) = &mut *self.side.lock() {
            ended.diagnostics = diagnostics;
        }
    }
}

fn lock_is_held_here() -> bool {
    Runtime::discover().is_ok_and(|runtime| runtime.lock_is_held_here())
}

impl python::StackWalk for native::Unwinder {
    fn callers(&self, pc: u64, sp: u64, bp: u64, callers: &mut Vec<(u64, u64)>) -> bool {
        self.unwind(pc, sp, bp, callers) == StackEnd::Root
    }

    fn function_of(&self, address: u64) -> Option<u64> {
        native::Unwinder::function_of(self, address)
    }
}

fn attach_now(runtime: Runtime, table: &'static ShadowTable, shared: &Shared) {
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        fault::point("attach");
        python::attach(runtime, table, Arc::new(native::current_modules_unwinder()))
    }));
    let mut side = shared.side.lock();
    if !matches!(*side, Side::Attaching { .. }) {
        // The session has ended meanwhile. An attribution detaches when it is dropped, without our lock.
        drop(side);
        drop(result);
        return;
    }
    *side = match result {
        Ok(Ok(attribution)) => Side::On(attribution),
        Ok(Err(error)) => off(PythonState::Unsupported(error.to_string()), runtime.version()),
        // What it had done by then was undone on the way out; whoever waits must not wait for ever.
        Err(_) => off(PythonState::Unsupported(PANICKED.to_owned()), runtime.version()),
    };
    shared.changed.notify_all();
}
