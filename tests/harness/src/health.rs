//! Reads health reports, for tests.

use crate::check::{self, Findings};
use endstone_spark::export::pb::{HealthData, HealthMetadata};
use prost::Message;

/// A report as the viewer gets it.
#[derive(Clone, Debug)]
pub struct Health {
    data: HealthData,
}

impl Health {
    /// Decodes the content of a `.sparkhealth`, or of an upload once it is unpacked.
    ///
    /// # Errors
    /// In words, if it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        HealthData::decode(bytes)
            .map(|data| Health { data })
            .map_err(|error| format!("not a health report ({error})"))
    }

    /// The message itself.
    pub fn data(&self) -> &HealthData {
        &self.data
    }

    /// The server. Empty where there is none, which the check says.
    pub fn metadata(&self) -> HealthMetadata {
        self.data.metadata.clone().unwrap_or_default()
    }

    /// What the viewer would stumble over.
    pub fn check(&self) -> Findings {
        check::check_health(&self.data)
    }
}
