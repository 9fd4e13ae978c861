//! What a profile shows.

/// Which threads share a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// Threads whose names differ only in numbers.
    #[default]
    ByPool,
    /// None.
    Separate,
    /// All.
    AllInOne,
}

/// What a profile shows of what was sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// Which threads share a tree.
    pub grouping: Grouping,
    /// Keep the interpreter's own call functions.
    pub show_interpreter: bool,
}
