//! Command lines in, answers out. Knows no server: arguments are texts, the session is a trait, answers are lines that the plugin delivers.
//!
//! ```text
//! arguments -> Tokens -> Command -> Control -> Line(s) -> text for a player or the console
//!                                   Notice --^
//! ```

mod answer;
mod declare;
mod figures;
mod flags;
mod health;
mod help;
mod info;
mod line;
mod monitor;
mod notice;
mod parse;
mod past;
mod permission;
mod ping;
mod run;
mod start;
mod statistics;
mod tokens;
mod view;

pub use answer::answer_refusal;
pub use declare::{ALIASES, DESCRIPTION, NAME, USAGES};
pub use health::HealthView;
pub use help::JavaCommand;
pub use line::{Audience, Grade, Line};
pub use notice::answer_notice;
pub use parse::{Command, ParseError, ProfilerCommand, parse};
pub use permission::{Granted, PERMISSIONS, Permission};
pub use run::run;
