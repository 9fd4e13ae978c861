//! Why an upload failed, in an owner's words.

use std::io;

use rustls::CertificateError;

use crate::limits;
use crate::model::clean_text;

/// Why a profile was not uploaded. Texts have no full stop.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UploadError {
    /// The owner may have named a server, and it is not known which.
    #[error(
        "plugins/spark/config.toml cannot be used as it is, so it is not known which server is meant (see the log at the server's start)"
    )]
    NoServer,
    /// Its name has no address: no network, no name server, or the name is wrong.
    #[error("{0} was not found: is this machine connected to the internet?")]
    NotFound(String),
    /// Nothing listens there, or there is no way to it.
    #[error("{0} cannot be reached")]
    Unreachable(String),
    /// No answer to the attempt to connect.
    #[error("{0} did not answer within {limit} s", limit = limits::CONNECT_SECONDS)]
    NoConnection(String),
    /// The other side neither takes nor gives.
    #[error("{0} went silent for {limit} s", limit = limits::STALLED_SECONDS)]
    Stalled(String),
    /// Too slow.
    #[error("it was not done within {} s", limits::UPLOAD_SECONDS)]
    TooSlow,
    /// The connection ended in the middle.
    #[error("{0} broke the connection off")]
    BrokenOff(String),
    /// Somebody else may be answering.
    #[error("{host} does not prove who it is: its certificate {why}")]
    Certificate {
        /// The server.
        host: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another problem with encryption.
    #[error("no encrypted connection to {host} could be made ({why})")]
    Encryption {
        /// The server.
        host: String,
        /// In the words of the library.
        why: String,
    },
    /// 413.
    #[error("it is too large for {0}")]
    TooLarge(String),
    /// 429.
    #[error("{0} has had too many uploads from here; it takes more in some minutes")]
    TooMany(String),
    /// Another status.
    #[error("{host} refused it (HTTP status {status})")]
    Refused {
        /// The server.
        host: String,
        /// What it said.
        status: u16,
    },
    /// 5xx.
    #[error("{host} is in trouble (HTTP status {status})")]
    ServerTrouble {
        /// The server.
        host: String,
        /// What it said.
        status: u16,
    },
    /// 3xx. Not followed: it could lead anywhere.
    #[error("{0} sent us elsewhere, which is not followed; is bytebinUrl right?")]
    Redirected(String),
    /// A good status without a key.
    #[error("the answer of {0} was not understood; is bytebinUrl right?")]
    NotUnderstood(String),
    /// The proxy of the environment did not do it.
    #[error("the proxy that {variable} names {why}")]
    Proxy {
        /// The environment variable.
        variable: &'static str,
        /// What it did.
        why: String,
    },
    /// No file descriptor is free.
    #[error("too many files are open in the server; try again when it has less to do, or allow it more (ulimit -n)")]
    TooManyOpen,
    /// The system refused something else.
    #[error("the system did not allow it ({0})")]
    System(String),
    /// No thread.
    #[error("the system allows the server no further thread ({0})")]
    NoThread(String),
    /// Nobody waits for it any more.
    #[error("it was broken off")]
    Unwanted,
    /// A bug of ours.
    #[error("an internal error of the profiler")]
    Internal,
}

impl UploadError {
    /// What a status that is no success stands for.
    pub(super) fn of_status(host: &str, status: u16) -> Self {
        let host = host.to_owned();
        match status {
            300..=399 => UploadError::Redirected(host),
            413 => UploadError::TooLarge(host),
            429 => UploadError::TooMany(host),
            500..=599 => UploadError::ServerTrouble { host, status },
            _ => UploadError::Refused { host, status },
        }
    }

    /// What went wrong on the way to `host` itself.
    pub(super) fn of_transport(host: &str, error: &ureq::Error) -> Self {
        let host = host.to_owned();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) => UploadError::NoConnection(host),
            ureq::Error::Timeout(ureq::Timeout::Resolve) | ureq::Error::HostNotFound => UploadError::NotFound(host),
            ureq::Error::Timeout(_) => UploadError::Stalled(host),
            ureq::Error::Tls(why) => UploadError::Encryption {
                host,
                why: (*why).to_owned(),
            },
            ureq::Error::Io(error) => UploadError::of_io(host, error),
            ureq::Error::ConnectionFailed => UploadError::Unreachable(host),
            // What is left is about the answer: too large, not HTTP, cut short.
            _ => UploadError::NotUnderstood(host),
        }
    }

    fn of_io(host: String, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::PermissionDenied => UploadError::Unreachable(host),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => UploadError::BrokenOff(host),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => UploadError::Stalled(host),
            // A name that is not found has no number of the system's, and no kind of its own.
            _ if error.raw_os_error().is_none() => UploadError::NotFound(host),
            _ => UploadError::System(clean_text(&error.to_string(), limits::COMMENT_CHARS)),
        }
    }

    pub(super) fn of_tls(host: String, error: &rustls::Error) -> Self {
        let rustls::Error::InvalidCertificate(error) = error else {
            return UploadError::Encryption {
                host,
                why: clean_text(&error.to_string(), limits::ECHO_CHARS),
            };
        };
        let why = match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "has expired (or this machine's clock is wrong)"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "is not valid yet (or this machine's clock is wrong)"
            }
            CertificateError::UnknownIssuer => "is not from an authority that browsers trust",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "is for another server"
            }
            CertificateError::Revoked => "was revoked",
            _ => "is not valid",
        };
        UploadError::Certificate { host, why }
    }

    /// Whether a second try may help: the connection failed, or the server had trouble of its own. Not when it went silent: it may have the profile already, and
    /// the owner has waited long enough.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            UploadError::NotFound(_)
                | UploadError::Unreachable(_)
                | UploadError::NoConnection(_)
                | UploadError::BrokenOff(_)
                | UploadError::Proxy { .. }
                | UploadError::TooManyOpen
                | UploadError::ServerTrouble { .. }
        )
    }
}
