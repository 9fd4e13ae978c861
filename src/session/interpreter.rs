//! Asks Python for what a report says of it, and does not wait for it longer than a report may take.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::limits;
use crate::model::Interpreter;
use crate::python;
use crate::sys::{Deadline, thread};

/// Said of an interpreter whose lock somebody holds.
const BUSY: &str = "it did not answer in time";

/// A question under way.
#[derive(Debug)]
pub(super) struct Question(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// `Some` once it was answered, with whatever.
    answer: Mutex<Option<Option<Interpreter>>>,
    answered: Condvar,
}

impl Question {
    /// Asks, on a thread that may wait for the interpreter's lock for as long as it likes.
    pub(super) fn ask() -> Self {
        let shared = Arc::new(Shared::default());
        let asked = thread::spawn("spark-python", {
            let shared = Arc::clone(&shared);
            move || {
                let answer = python::interpreter();
                *shared.answer.lock() = Some(answer);
                shared.answered.notify_all();
            }
        });
        if let Err(error) = asked {
            let problem = format!("no thread could be started to ask it: {error}");
            *shared.answer.lock() = Some(python::interpreter_unasked(&problem));
        }
        Question(shared)
    }

    /// The answer, or what is known without; `None` when there is no Python. Not waited for after the deadline.
    pub(super) fn answer(self, deadline: &Deadline) -> Option<Interpreter> {
        let mut answer = self.0.answer.lock();
        let limit = Duration::from_millis(limits::ATTACH_WAIT_MILLIS);
        deadline.wait_while(&self.0.answered, &mut answer, limit, |answer| answer.is_none());
        answer.take().unwrap_or_else(|| python::interpreter_unasked(BUSY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_python_has_no_interpreter() {
        assert_eq!(Question::ask().answer(&Deadline::default()), None);
    }
}
