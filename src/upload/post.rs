//! The HTTP exchange.

use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ureq::tls::{RootCerts, TlsConfig};

use super::Shared;
use super::content::Content;
use super::error::UploadError;
use super::proxy::Proxy;
use super::reply::{self, Key};
use super::way::Way;
use crate::limits;

/// By which servers know us.
const USER_AGENT: &str = concat!("endstone-spark/", env!("CARGO_PKG_VERSION"));

/// A client for one upload.
pub(super) fn agent(proxy: Option<&Proxy>, roots: RootCerts) -> ureq::Agent {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    ureq::Agent::config_builder()
        .proxy(proxy.map(|proxy| proxy.client.clone()))
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .user_agent(USER_AGENT)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .max_response_header_size(limits::UPLOAD_HEADER_BYTES)
        .timeout_resolve(seconds(limits::CONNECT_SECONDS))
        .timeout_connect(seconds(limits::CONNECT_SECONDS))
        .timeout_per_read(seconds(limits::STALLED_SECONDS))
        .timeout_per_write(seconds(limits::STALLED_SECONDS))
        .build()
        .new_agent()
}

/// Sends the body, a second time after a pause if that may help, until `end` in all.
pub(super) fn post(
    agent: &ureq::Agent,
    url: &str,
    way: &Way,
    (content, body): (Content, &[u8]),
    shared: &Shared,
    end: Instant,
) -> Result<Key, UploadError> {
    let once = || {
        // Relaxed: a figure to show.
        shared.sent.store(0, Ordering::Relaxed);
        let left = end.saturating_duration_since(Instant::now());
        post_once(
            agent,
            url,
            way,
            (content, &Body { rest: body, shared }),
            body.len(),
            left,
        )
    };
    let first = once();
    match first {
        Err(error) if error.is_passing() && shared.pause(Duration::from_millis(limits::UPLOAD_PAUSE_MILLIS)) => once(),
        _ if !shared.is_wanted() => Err(UploadError::Unwanted),
        outcome => outcome,
    }
}

fn post_once(
    agent: &ureq::Agent,
    url: &str,
    way: &Way,
    (content, body): (Content, &Body<'_>),
    length: usize,
    left: Duration,
) -> Result<Key, UploadError> {
    // Relaxed: the client reads the body on this thread.
    let has_begun = || body.shared.sent.load(Ordering::Relaxed) > 0;
    let transport = |error: ureq::Error| way.failure(&error, has_begun());
    let mut response = agent
        .post(url)
        .header("Content-Type", content.media_type())
        .header("Content-Encoding", "gzip")
        .header("Content-Length", length.to_string())
        .config()
        .timeout_global(Some(left))
        .build()
        .send(ureq::SendBody::from_reader(&mut { *body }))
        .map_err(transport)?;
    let status = response.status();
    if !status.is_success() {
        return Err(UploadError::of_status(&way.host, status.as_u16()));
    }
    let reply = response
        .body_mut()
        .with_config()
        .limit(limits::UPLOAD_REPLY_BYTES)
        .read_to_vec()
        .map_err(transport)?;
    let location = response.headers().get("Location").and_then(|value| value.to_str().ok());
    reply::key(location, &reply).ok_or_else(|| UploadError::NotUnderstood(way.host.clone()))
}

/// The body, counting what is taken of it.
#[derive(Clone, Copy)]
struct Body<'a> {
    rest: &'a [u8],
    shared: &'a Shared,
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        // Relaxed: a figure to show.
        self.shared.sent.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
