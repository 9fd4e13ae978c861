//! What the interpreter says of itself, for a report.

use serde::Deserialize;

use super::api::{Runtime, Unsupported};
use super::collector;
use super::gil::with_gil;
use super::objects::{PythonError, Refs};
use crate::model::{Generation, Interpreter};

/// Answers of `interpreter.py`.
#[derive(Debug, Deserialize)]
struct Answer {
    implementation: String,
    threads: Option<u32>,
    collects: bool,
    generations: Vec<GenerationAnswer>,
}

#[derive(Debug, Deserialize)]
struct GenerationAnswer {
    collections: u64,
    collected: u64,
    uncollectable: u64,
}

/// Asks the interpreter of this process; `None` when there is none. Takes its lock on a thread of its own and waits for the answer, for as long as
/// [`crate::limits::INTERPRETER_LOCK_SECONDS`] and more: to be called where that does no harm.
pub fn interpreter() -> Option<Interpreter> {
    let runtime = match Runtime::discover() {
        Ok(runtime) => runtime,
        Err(Unsupported::NoPython) => return None,
        Err(error) => {
            let (Unsupported::TooOld(version) | Unsupported::Version(version) | Unsupported::Missing { version, .. }) =
                &error
            else {
                return None;
            };
            return Some(unanswered(version, &error.to_string()));
        }
    };
    let api = runtime.api;
    let asked = with_gil(api, move || {
        let mut refs = Refs::new(api);
        let answer = ask(&mut refs);
        refs.release();
        answer
    });
    Some(match asked {
        Ok(Ok(answer)) => Interpreter {
            implementation: shown_name(&answer.implementation),
            version: runtime.version().to_owned(),
            threads: answer.threads,
            collects: Some(answer.collects),
            generations: generations(&answer.generations),
            problem: None,
        },
        Ok(Err(error)) => unanswered(runtime.version(), &error.to_string()),
        Err(error) => unanswered(runtime.version(), &error.to_string()),
    })
}

/// The interpreter of this process where it was not asked; `None` when there is none. Needs no lock and does not wait.
pub fn interpreter_unasked(problem: &str) -> Option<Interpreter> {
    match Runtime::discover() {
        Ok(runtime) => Some(unanswered(runtime.version(), problem)),
        Err(Unsupported::NoPython) => None,
        Err(Unsupported::TooOld(version) | Unsupported::Version(version) | Unsupported::Missing { version, .. }) => {
            Some(unanswered(&version, problem))
        }
    }
}

fn unanswered(version: &str, problem: &str) -> Interpreter {
    Interpreter {
        // The only one that has the functions by which it is found.
        implementation: "CPython".to_owned(),
        version: version.to_owned(),
        problem: Some(problem.to_owned()),
        ..Interpreter::default()
    }
}

/// `sys.implementation.name` is in lower case.
fn shown_name(name: &str) -> String {
    match name {
        "cpython" => "CPython".to_owned(),
        other => other.to_owned(),
    }
}

fn ask(refs: &mut Refs) -> Result<Answer, PythonError> {
    let script = refs.run(include_str!("interpreter.py"), c"<spark>")?;
    let describe = refs.global(script, c"describe")?;
    let answer = refs.call(describe, &[], "asking the interpreter for its figures")?;
    let answer = refs.read_text(answer).unwrap_or_default();
    serde_json::from_str(&answer).map_err(|error| PythonError {
        what: "reading the interpreter's figures",
        message: error.to_string(),
    })
}

fn generations(answers: &[GenerationAnswer]) -> Vec<Generation> {
    let is_timing = collector::is_timing();
    let numbered = answers.iter().enumerate();
    numbered
        .map(|(number, answer)| Generation {
            collections: answer.collections,
            collected: answer.collected,
            uncollectable: answer.uncollectable,
            times: collector::times(number).filter(|_| is_timing),
        })
        .collect()
}
