//! The way that an upload takes, and who is to blame when it leads nowhere.

use std::error::Error;
use std::fs::File;
use std::io;

use rustix::io::Errno;

use super::error::UploadError;
use super::proxy::Proxy;
use crate::limits;

/// From here to the server.
#[derive(Debug)]
pub(super) struct Way {
    /// The server.
    pub(super) host: String,
    /// Who is asked to connect us.
    pub(super) proxy: Option<Proxy>,
}

impl Way {
    /// Why it led nowhere. `has_begun`: some of the profile has been sent, so there was a connection to the server itself.
    pub(super) fn failure(&self, error: &ureq::Error, has_begun: bool) -> UploadError {
        if let ureq::Error::Timeout(ureq::Timeout::Global | ureq::Timeout::PerCall) = error {
            return UploadError::TooSlow;
        }
        if let Some(error) = tls_error(error) {
            return UploadError::of_tls(self.host.clone(), error);
        }
        let failure = match &self.proxy {
            Some(proxy) if !has_begun => self.failure_of_proxy(proxy, error),
            _ => UploadError::of_transport(&self.host, error),
        };
        match failure {
            // Then names are not found either, and connections fail in the system's words.
            UploadError::NotFound(_) | UploadError::System(_) | UploadError::Proxy { .. }
                if no_descriptor_is_free() =>
            {
                UploadError::TooManyOpen
            }
            failure => failure,
        }
    }

    fn failure_of_proxy(&self, proxy: &Proxy, error: &ureq::Error) -> UploadError {
        let words = match error {
            ureq::Error::ConnectProxyFailed(answer) if answer.contains("407") => Some(Words::Stranger),
            ureq::Error::ConnectProxyFailed(answer) if answer.contains("responded") => Some(Words::Refusal),
            ureq::Error::ConnectProxyFailed(_) => Some(Words::None),
            // A SOCKS proxy's answers have no number of the system's.
            ureq::Error::Io(error) if error.raw_os_error().is_none() => match error.kind() {
                io::ErrorKind::InvalidData => Some(Words::Nonsense),
                io::ErrorKind::PermissionDenied => Some(Words::Stranger),
                io::ErrorKind::Other | io::ErrorKind::InvalidInput => Some(Words::Refusal),
                _ => None,
            },
            _ => None,
        };
        let host = &self.host;
        let why = match words {
            Some(Words::Nonsense) => "does not answer like a proxy".to_owned(),
            Some(Words::Stranger) => "wants another name and password".to_owned(),
            Some(Words::Refusal) => format!("could not connect us to {host}"),
            Some(Words::None) => "broke the connection off".to_owned(),
            None => match UploadError::of_transport(host, error) {
                // It is given the address, not the name.
                UploadError::NotFound(host) if proxy.client.resolve_target() => return UploadError::NotFound(host),
                UploadError::NotFound(_) => "was not found".to_owned(),
                UploadError::Unreachable(_) => "cannot be reached".to_owned(),
                UploadError::NoConnection(_) => format!("did not answer within {} s", limits::CONNECT_SECONDS),
                UploadError::Stalled(_) => format!("went silent for {} s", limits::STALLED_SECONDS),
                UploadError::BrokenOff(_) => "broke the connection off".to_owned(),
                UploadError::NotUnderstood(_) => "does not answer like a proxy".to_owned(),
                other => return other,
            },
        };
        UploadError::Proxy {
            variable: proxy.variable,
            why,
        }
    }
}

/// What a proxy may say.
enum Words {
    /// It does not know us.
    Stranger,
    /// It could not, or will not.
    Refusal,
    /// No proxy's words.
    Nonsense,
    /// It closed.
    None,
}

/// The trouble with encryption that is behind an error. The client passes it on as an error of the connection, too.
fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    let error = match error {
        ureq::Error::Rustls(error) => return Some(error),
        ureq::Error::Io(error) => error,
        _ => return None,
    };
    let mut source: Option<&(dyn Error + 'static)> = error.get_ref().map(|inner| inner as &(dyn Error + 'static));
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        source = inner.source();
    }
    None
}

/// Asked after a failure: whether files can be opened at all.
fn no_descriptor_is_free() -> bool {
    let tried = File::open("/dev/null").err().and_then(|error| error.raw_os_error());
    tried
        .map(Errno::from_raw_os_error)
        .is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE))
}
