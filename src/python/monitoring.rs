//! `sys.monitoring` as we use it: one tool id, six events, six callbacks.

use std::ffi::{CStr, c_long};

use pyo3_ffi::PyObject;

use super::objects::{PythonError, Refs};

/// The events, in the order of all tables indexed by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Event {
    Start = 0,
    Resume = 1,
    Throw = 2,
    Return = 3,
    Yield = 4,
    Unwind = 5,
}

impl Event {
    pub(super) const ALL: [Event; 6] = [
        Event::Start,
        Event::Resume,
        Event::Throw,
        Event::Return,
        Event::Yield,
        Event::Unwind,
    ];

    /// Number of events.
    pub(super) const COUNT: usize = Event::ALL.len();

    /// Whether a frame is entered.
    pub(super) const fn is_enter(self) -> bool {
        matches!(self, Event::Start | Event::Resume | Event::Throw)
    }

    /// Its name in `sys.monitoring.events`.
    pub(super) const fn name(self) -> &'static CStr {
        match self {
            Event::Start => c"PY_START",
            Event::Resume => c"PY_RESUME",
            Event::Throw => c"PY_THROW",
            Event::Return => c"PY_RETURN",
            Event::Yield => c"PY_YIELD",
            Event::Unwind => c"PY_UNWIND",
        }
    }
}

/// Tool ids, the one meant for profilers first (PEP 669, "Tool identifiers").
const TOOL_IDS: [c_long; 6] = [2, 0, 1, 3, 4, 5];

/// A tool id that is ours, with what is needed to use it. All methods need the interpreter's lock; the objects live as long as the interpreter
/// keeps `sys.monitoring`, and the references in `kept` are ours until [`Tool::free`].
#[derive(Debug)]
pub(super) struct Tool {
    monitoring: *mut PyObject,
    /// The very object by which the id was taken: another tool of the same name has another.
    name: *mut PyObject,
    id: c_long,
    events: [c_long; Event::COUNT],
    /// What was registered last, to tell whether it still is.
    registered: [*mut PyObject; Event::COUNT],
    kept: Vec<*mut PyObject>,
}

// SAFETY: the objects are touched only with the interpreter's lock held, from whichever thread.
unsafe impl Send for Tool {}

/// Why no tool id could be taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    #[error("all six tool ids of sys.monitoring are in use by {0}")]
    NoneFree(String),
    #[error(transparent)]
    Python(#[from] PythonError),
}

impl Tool {
    /// Takes the first free id, profilers' own first.
    pub(super) fn take(refs: &mut Refs) -> Result<Tool, ToolError> {
        // SAFETY: the lock is held; the result is borrowed from `sys`, a reference is taken below.
        let monitoring = unsafe { (refs.api.PySys_GetObject)(c"monitoring".as_ptr()) };
        if monitoring.is_null() {
            return Err(PythonError {
                what: "finding sys.monitoring",
                message: "it is gone".to_owned(),
            }
            .into());
        }
        let name = refs.text("spark")?;
        let numbers = refs.attribute(monitoring, c"events")?;
        let mut events = [0; Event::COUNT];
        for (event, number) in Event::ALL.into_iter().zip(&mut events) {
            let value = refs.attribute(numbers, event.name())?;
            *number = refs.read_int(value, "reading an event's number")?;
        }
        let mut users = Vec::new();
        for id in TOOL_IDS {
            let number = refs.int(id)?;
            let user = refs.method(monitoring, c"get_tool", &[number])?;
            if user != refs.api.none {
                users.extend(refs.read_text(user));
                continue;
            }
            refs.method(monitoring, c"use_tool_id", &[number, name])?;
            // SAFETY: the lock is held; these two outlive `refs`, so each gets a reference of its own.
            unsafe {
                (refs.api.Py_IncRef)(monitoring);
                (refs.api.Py_IncRef)(name);
            }
            return Ok(Tool {
                monitoring,
                name,
                id,
                events,
                registered: [std::ptr::null_mut(); Event::COUNT],
                kept: vec![monitoring, name],
            });
        }
        Err(ToolError::NoneFree(users.join(", ")))
    }

    /// Keeps these objects alive as long as the id is ours.
    pub(super) fn keep(&mut self, refs: &Refs, objects: &[*mut PyObject]) {
        for object in objects {
            // SAFETY: the lock is held and the object is alive; the reference is given back by `free`.
            unsafe { (refs.api.Py_IncRef)(*object) };
            self.kept.push(*object);
        }
    }

    /// Registers `callback` for `event`, or none for null, and gives what was registered before; `None` for nothing.
    fn register(
        &self,
        refs: &mut Refs,
        event: Event,
        callback: *mut PyObject,
    ) -> Result<Option<*mut PyObject>, PythonError> {
        let id = refs.int(self.id)?;
        let number = refs.int(self.events.get(event as usize).copied().unwrap_or(0))?;
        let callback = if callback.is_null() { refs.api.none } else { callback };
        let before = refs.method(self.monitoring, c"register_callback", &[id, number, callback])?;
        Ok((before != refs.api.none).then_some(before))
    }

    /// Registers one callback per event; the tool keeps references.
    pub(super) fn register_all(
        &mut self,
        refs: &mut Refs,
        callbacks: &[*mut PyObject; Event::COUNT],
    ) -> Result<(), PythonError> {
        for (event, callback) in Event::ALL.into_iter().zip(callbacks) {
            self.register(refs, event, *callback)?;
            // SAFETY: the lock is held and the callback is alive; the reference is given back by `free`.
            unsafe { (refs.api.Py_IncRef)(*callback) };
            self.kept.push(*callback);
            if let Some(place) = self.registered.get_mut(event as usize) {
                *place = *callback;
            }
        }
        Ok(())
    }

    /// Switches all our events on or off for the whole interpreter.
    pub(super) fn switch(&self, refs: &mut Refs, on: bool) -> Result<(), PythonError> {
        let id = refs.int(self.id)?;
        let events = refs.int(if on { self.mask() } else { 0 })?;
        refs.method(self.monitoring, c"set_events", &[id, events])?;
        Ok(())
    }

    fn mask(&self) -> c_long {
        self.events.iter().fold(0, |mask, event| mask | event)
    }

    /// Whether id, events and callbacks are still as we left them; else what was changed, in a user's words.
    pub(super) fn check(&self, refs: &mut Refs) -> Result<Result<(), String>, PythonError> {
        let id = refs.int(self.id)?;
        let user = refs.method(self.monitoring, c"get_tool", &[id])?;
        if user != self.name {
            let user = refs.read_text(user);
            let user = user.map_or("was freed".to_owned(), |user| format!("was taken over by {user}"));
            return Ok(Err(format!("our sys.monitoring tool id {} {user}", self.id)));
        }
        let events = refs.method(self.monitoring, c"get_events", &[id])?;
        if refs.read_int(events, "reading the active events")? & self.mask() != self.mask() {
            return Ok(Err(
                "our sys.monitoring events were switched off by other code".to_owned()
            ));
        }
        for (event, ours) in Event::ALL.into_iter().zip(self.registered) {
            // The only way to ask is to set it again.
            let before = self.register(refs, event, ours)?;
            if before != Some(ours) {
                if let Some(theirs) = before {
                    self.register(refs, event, theirs)?;
                }
                return Ok(Err(
                    "our sys.monitoring callbacks were replaced by other code".to_owned()
                ));
            }
        }
        Ok(Ok(()))
    }

    /// A second handle on the same id, good for [`Tool::check`]: its objects live as long as `refs`.
    pub(super) fn handle(&self, refs: &mut Refs) -> Result<Tool, PythonError> {
        for object in [self.monitoring, self.name].into_iter().chain(self.registered) {
            if !object.is_null() {
                // SAFETY: the lock is held and this tool keeps the object alive; the new reference is given back with `refs`.
                unsafe { (refs.api.Py_IncRef)(object) };
                refs.own(object, "looking at the monitoring tool")?;
            }
        }
        Ok(Tool {
            kept: Vec::new(),
            ..*self
        })
    }

    /// Events off, callbacks unregistered, id free, in this order; what is not ours any more is left alone. Gives the references back.
    pub(super) fn free(self, refs: &mut Refs) -> Result<(), PythonError> {
        let result = self.free_id(refs);
        for object in self.kept {
            // SAFETY: the lock is held; each is a reference that `take` or `register_all` took.
            unsafe { (refs.api.Py_DecRef)(object) };
        }
        result
    }

    /// An id that was freed by other code is taken back for a moment: CPython 3.12 and 3.13 leave the events of a freed id on. One that has a new
    /// owner keeps its events, but our callbacks do not stay among the owner's.
    fn free_id(&self, refs: &mut Refs) -> Result<(), PythonError> {
        let id = refs.int(self.id)?;
        let user = refs.method(self.monitoring, c"get_tool", &[id])?;
        if user == refs.api.none {
            refs.method(self.monitoring, c"use_tool_id", &[id, self.name])?;
        } else if user != self.name {
            return self.unregister(refs);
        }
        self.switch(refs, false)?;
        self.unregister(refs)?;
        refs.method(self.monitoring, c"free_tool_id", &[id])?;
        Ok(())
    }

    /// Unregisters our callbacks, and only ours.
    fn unregister(&self, refs: &mut Refs) -> Result<(), PythonError> {
        for (event, ours) in Event::ALL.into_iter().zip(self.registered) {
            if let Some(before) = self.register(refs, event, std::ptr::null_mut())?
                && before != ours
            {
                self.register(refs, event, before)?;
            }
        }
        Ok(())
    }
}
