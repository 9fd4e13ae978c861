//! Command lines in, answers out. Knows no server: arguments are texts, the session is a trait, answers are lines that the plugin delivers.
//!
//! ```text
//! arguments -> Tokens -> Command -> Control -> Line(s) -> text for a player or the console
//!                                   Notice --^
//! ```

mod answer;
mod clean;
mod declare;
mod figures;
mod flags;
mod line;
mod parse;
mod run;
mod tokens;
mod view;

pub use answer::{answer_notice, answer_refusal};
pub use clean::clean_text;
pub use declare::{ALIASES, DESCRIPTION, NAME, PERMISSION, PERMISSION_DESCRIPTION, USAGES};
pub use line::{Audience, Line};
pub use parse::{Command, ParseError, ProfilerCommand, parse};
pub use run::run;
