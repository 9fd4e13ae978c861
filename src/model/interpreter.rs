//! The Python interpreter of the server's process.

/// What is known of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interpreter {
    /// e.g. `CPython`.
    pub implementation: String,
    /// e.g. `3.13.0`.
    pub version: String,
    /// Threads that run Python code, as the module `threading` knows them; `None` where it is not loaded or the interpreter did not answer.
    pub threads: Option<u32>,
    /// Whether memory is collected by itself; `None` where the interpreter did not answer.
    pub collects: Option<bool>,
    /// The collector's generations, youngest first; empty where the interpreter did not answer.
    pub generations: Vec<Generation>,
    /// Why not everything is known, in a user's words.
    pub problem: Option<String>,
}

/// How long collections took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectionTimes {
    /// How many were timed.
    pub collections: u64,
    /// All of them together, in nanoseconds.
    pub nanos: u64,
    /// The longest, in nanoseconds.
    pub longest_nanos: u64,
}

/// One generation of the garbage collector, since the interpreter's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation {
    /// How often it was collected.
    pub collections: u64,
    /// Objects that were found to be unreachable.
    pub collected: u64,
    /// Objects that could not be freed.
    pub uncollectable: u64,
    /// How long collections took, of those since the plugin's start; `None` where they were not timed.
    pub times: Option<CollectionTimes>,
}
