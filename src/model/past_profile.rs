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

/// A profile that was made: who, when, what, where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PastProfile {
    /// When it was done, in milliseconds since the Unix epoch.
    pub time: i64,
    /// Who asked for it.
    pub user: String,
    /// How long the session was.
    pub seconds: u64,
    /// How many samples it has.
    pub samples: u64,
    /// Where it is.
    #[serde(flatten)]
    pub place: ProfilePlace,
}
