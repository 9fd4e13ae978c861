//! A profile that was made.

use serde::{Deserialize, Serialize};

/// Where a profile is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfilePlace {
    /// In the viewer, under this address.
    Link(String),
    /// In a file, given from the server's `plugins` folder on.
    File(String),
}

/// What was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PastKind {
    /// A profile. Lists of older versions say nothing and hold nothing else.
    #[default]
    Profile,
    /// A profile of what the background profiler had.
    Background,
    /// A health report: it has neither length nor samples.
    Health,
}

/// A profile or health report that was made: who, when, what, where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PastProfile {
    /// When it was done, in milliseconds since the Unix epoch.
    pub time: i64,
    /// Who asked for it.
    pub user: String,
    /// Which of the two.
    #[serde(default)]
    pub kind: PastKind,
    /// How long the session was.
    pub seconds: u64,
    /// How many samples it has.
    pub samples: u64,
    /// Where it is.
    #[serde(flatten)]
    pub place: ProfilePlace,
}
