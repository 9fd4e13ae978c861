//! Makes a health report and sends it, on a thread of its own: a session that runs is looked after meanwhile.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use super::control::{Notice, Requester};
use super::report::{creator, place, put_among_profiles, source};
use super::server::{Inquiry, last_minutes};
use super::state::Shared;
use super::upload;
use crate::export::{self, HealthReport};
use crate::limits;
use crate::model::{PastKind, PastProfile, ProfilePlace, clean_text};
use crate::sys::{clock, fault};
use crate::upload::Content;

/// Told when this failed in a way that should not be.
const PANICKED: &str = "an internal error of spark; the server is not affected";

/// Makes a report, sends it to the viewer's server, and saves it to a file when that fails.
pub(super) fn run(shared: &Shared, by: &Requester) {
    let made = panic::catch_unwind(AssertUnwindSafe(|| report(shared, by)));
    shared.state.lock().health_is_made = false;
    if made.is_err() {
        shared.send(by, Notice::HealthFailed(PANICKED.to_owned()));
    }
}

fn report(shared: &Shared, by: &Requester) {
    fault::point("health");
    let report = make(shared, by);
    let reason = match send(shared, by, &report) {
        Ok(link) => {
            remember(shared, by, &report, ProfilePlace::Link(link.clone()));
            return shared.send(by, Notice::HealthUploaded { link });
        }
        Err(reason) => reason,
    };
    let saved = put_among_profiles(&shared.folder, &shared.settings, |profiles| {
        export::save_health(profiles, &report)
    });
    match saved {
        Ok((path, removal)) => {
            if let Some(removal) = removal {
                shared.send(by, removal);
            }
            remember(shared, by, &report, ProfilePlace::File(place(&path)));
            let viewer = shared.settings.viewer.page("");
            shared.send(by, Notice::HealthSaved { reason, path, viewer });
        }
        Err(error) => shared.send(
            by,
            Notice::HealthFailed(format!("{reason}; nor could it be saved: {error}")),
        ),
    }
}

fn make(shared: &Shared, by: &Requester) -> HealthReport {
    let server = Inquiry::begin(shared).end(shared);
    let environment = shared.environment.lock().clone();
    HealthReport {
        creator: creator(by),
        time: clock::wall(),
        server,
        sources: environment.plugins.iter().map(source).collect(),
        minutes: last_minutes(shared),
    }
}

/// Sends the report and waits for it, as long as the plugin is not being disabled. Gives the link, or why there is none, in a user's words.
fn send(shared: &Shared, by: &Requester, report: &HealthReport) -> Result<String, String> {
    let body: Arc<[u8]> = export::compress_health(report)
        .map_err(|error| error.to_string())?
        .into();
    let upload = upload::begin(shared, by, Content::Health, body).map_err(|error| error.to_string())?;
    loop {
        match upload.wait(Duration::from_millis(limits::UPLOAD_LOOK_MILLIS)) {
            Some(Ok(key)) => return Ok(upload::link(shared, &key)),
            Some(Err(error)) => return Err(error.to_string()),
            None if shared.state.lock().shutting_down => return Err("the plugin is being disabled".to_owned()),
            None => {}
        }
    }
}

/// Adds it to the list of what was made.
fn remember(shared: &Shared, by: &Requester, report: &HealthReport, place: ProfilePlace) {
    let entry = PastProfile {
        time: report.time.0,
        user: clean_text(&by.display_name(), limits::NAME_CHARS),
        kind: PastKind::Health,
        seconds: 0,
        samples: 0,
        place,
    };
    shared.list(by, entry, report.time);
}
