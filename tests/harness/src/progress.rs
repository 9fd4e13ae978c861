//! Tells whoever waits what is being done.

use std::io::IsTerminal;
use std::time::Instant;

/// One piece of work that takes seconds. Says so on standard error at its start, and how long it took at its end.
#[derive(Debug)]
pub struct Step {
    name: String,
    start: Instant,
}

impl Step {
    /// Announces the work, for example `Fetching Debian's Python 3.14`.
    pub fn start(name: impl Into<String>) -> Self {
        let name = name.into();
        eprintln!("{} {name} ...", paint("36", "==>"));
        Self {
            name,
            start: Instant::now(),
        }
    }

    /// What is being done.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says again that it is going on. For work that takes longer than a reader's patience.
    pub fn still(&self) {
        eprintln!("    ... {} ({} s so far)", self.name, self.start.elapsed().as_secs());
    }

    /// Announces the end.
    pub fn done(self) {
        eprintln!("    done in {:.1} s", self.start.elapsed().as_secs_f64());
    }
}

/// One line of information between steps.
pub fn note(text: impl AsRef<str>) {
    eprintln!("    {}", text.as_ref());
}

fn paint(colour: &str, text: &str) -> String {
    if std::io::stderr().is_terminal() {
        format!("\x1b[{colour}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
