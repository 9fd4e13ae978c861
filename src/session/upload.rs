//! The upload of a profile, watched by the worker.

use std::sync::Arc;
use std::time::Duration;

use super::control::{Notice, Requester};
use super::state::{Ending, Interrupt, Phase, Shared};
use super::unsaved::Unsaved;
use crate::export;
use crate::limits;
use crate::upload::{Content, Key, Upload, UploadError};

/// How an upload went.
pub(super) enum Sent {
    /// It is there, under this address.
    Done(String),
    /// It is not. The owner should have a file.
    Failed(Failure),
    /// It was broken off for a file.
    Instead,
    /// It was broken off, and the profile is not wanted any more.
    Dropped(Requester),
}

/// Why a profile is not there.
pub(super) struct Failure {
    /// In a user's words.
    pub(super) reason: String,
    /// Whether it is a matter of this profile alone.
    pub(super) others_may_arrive: bool,
}

impl Failure {
    fn of_all(reason: String) -> Sent {
        Sent::Failed(Failure {
            reason,
            others_may_arrive: false,
        })
    }
}

/// Sends a profile to the viewer's server and waits for it, as long as somebody wants it.
pub(super) fn send(shared: &Shared, by: &Requester, unsaved: &Unsaved) -> Sent {
    let body: Arc<[u8]> = match export::compress(&unsaved.profile) {
        Ok(body) => body.into(),
        Err(error) => return Failure::of_all(error.to_string()),
    };
    let bytes = body.len() as u64;
    let upload = match begin(shared, by, Content::Profile, body) {
        Ok(upload) => Arc::new(upload),
        Err(error) => return Failure::of_all(error.to_string()),
    };
    shared.state.lock().phase = Phase::Ending(Ending::Uploading {
        upload: Arc::clone(&upload),
        bytes,
    });
    let outcome = loop {
        if let Some(outcome) = upload.wait(Duration::from_millis(limits::UPLOAD_LOOK_MILLIS)) {
            break Some(outcome);
        }
        let state = shared.state.lock();
        if state.shutting_down || state.interrupt.is_some() {
            break None;
        }
    };
    let mut state = shared.state.lock();
    state.phase = Phase::Ending(Ending::Writing);
    let interrupt = state.interrupt.take();
    let shutting_down = state.shutting_down;
    drop(state);
    match (outcome, interrupt) {
        // It was done before it could be broken off: then there is a link, and its owner should know.
        (Some(Ok(key)), _) => Sent::Done(link(shared, &key)),
        (_, Some(Interrupt::Drop(by))) => Sent::Dropped(by),
        (_, Some(Interrupt::Save)) => Sent::Instead,
        (Some(Err(error)), None) => Sent::Failed(Failure {
            others_may_arrive: matches!(error, UploadError::TooLarge(_)),
            reason: error.to_string(),
        }),
        (None, None) if shutting_down => Failure::of_all("the plugin is being disabled".to_owned()),
        (None, None) => Failure::of_all(UploadError::Unwanted.to_string()),
    }
}

/// Says that something is sent to the viewer's server, and begins to.
pub(super) fn begin(shared: &Shared, by: &Requester, content: Content, body: Arc<[u8]>) -> Result<Upload, UploadError> {
    let server = shared.settings.bytebin.as_ref().ok_or(UploadError::NoServer)?;
    shared.send(
        by,
        Notice::Uploading {
            host: server.host().to_owned(),
            bytes: body.len() as u64,
        },
    );
    shared.uploader.begin(server, content, body)
}

/// Where what has this key can be looked at.
pub(super) fn link(shared: &Shared, key: &Key) -> String {
    shared.settings.viewer.page(key.as_str())
}
