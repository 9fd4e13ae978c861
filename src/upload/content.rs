//! What is sent.

/// What an upload is to the viewer, which knows by the content type what it has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A profile.
    Profile,
    /// A health report.
    Health,
}

impl Content {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Content::Profile => "application/x-spark-sampler",
            Content::Health => "application/x-spark-health",
        }
    }
}
