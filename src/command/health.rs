//! The options of `/spark health`.

use super::flags::Flag;
use super::parse::{HEALTH, ParseError, switch};

/// What is shown beside the usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HealthView {
    /// Sent to the viewer's server instead of shown.
    pub upload: bool,
    /// More of memory.
    pub memory: bool,
    /// Each network interface.
    pub network: bool,
}

impl HealthView {
    pub(super) fn of(flags: &[Flag]) -> Result<Self, ParseError> {
        let mut view = HealthView::default();
        for flag in flags {
            match flag.name.as_str() {
                "upload" => view.upload = switch("upload", flag)?,
                "memory" => view.memory = switch("memory", flag)?,
                "network" => view.network = switch("network", flag)?,
                _ => {
                    return Err(ParseError::UnknownFlag {
                        action: HEALTH,
                        name: flag.name.clone(),
                    });
                }
            }
        }
        Ok(view)
    }
}
