//! A stand-in for the server that takes uploads, on loopback, with every way in which the real one may behave.
#![allow(dead_code, reason = "no test binary uses all of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// How a server treats an upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As it should be.
    Ok,
    /// As it should be, a byte now and then.
    Slow,
    /// Takes the connection and nothing more.
    Hang,
    /// Answers with this status.
    Status(u16),
    /// The first upload fails with 500, the second succeeds.
    OnceInTrouble,
    /// The first upload is too large, the second succeeds.
    OnceTooLarge,
    /// Reads a part of the request and closes.
    ClosedEarly,
    /// A good status, and a body without end.
    EndlessBody,
    /// Not HTTP.
    Garbage,
    /// A good status without a key.
    NoKey,
    /// Sends to another address.
    Redirect,
    /// TLS with a certificate that nobody has signed.
    WrongCertificate,
    /// Each connection as another mode.
    Flaky,
}

/// What a flaky server does, one after the other. More often good than bad.
const MOODS: [Mode; 11] = [
    Mode::Ok,
    Mode::Status(500),
    Mode::Ok,
    Mode::Hang,
    Mode::Slow,
    Mode::ClosedEarly,
    Mode::Ok,
    Mode::Garbage,
    Mode::EndlessBody,
    Mode::NoKey,
    Mode::Status(413),
];

/// One request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

/// A running server. It is there until the process ends.
#[derive(Debug)]
pub struct Bytebin {
    /// For `bytebinUrl`.
    pub url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Bytebin {
    pub fn start(mode: Mode) -> Bytebin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if mode == Mode::WrongCertificate {
            "https"
        } else {
            "http"
        };
        let bytebin = Bytebin {
            url: format!("{scheme}://127.0.0.1:{port}"),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let tls = (mode == Mode::WrongCertificate).then(certificate);
        let (connections, requests) = (Arc::clone(&bytebin.connections), Arc::clone(&bytebin.requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = connections.fetch_add(1, Ordering::SeqCst);
                let (tls, requests) = (tls.clone(), Arc::clone(&requests));
                // The other side may close at any moment; that is its right.
                thread::spawn(move || {
                    let _ = match tls {
                        Some(config) => handshake(stream, config),
                        None => serve(mode, number, stream, &requests),
                    };
                });
            }
        });
        bytebin
    }

    /// How often somebody connected.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The requests that arrived whole since somebody asked last.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock())
    }

    /// The requests that arrived whole.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().clone()
    }
}

fn serve(mode: Mode, number: usize, mut stream: TcpStream, requests: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    let mode = match mode {
        Mode::Flaky => MOODS[number % MOODS.len()],
        steady => steady,
    };
    match mode {
        Mode::Hang => {
            // Until the other side gives up.
            stream.read_exact(&mut [0; 1])?;
            return stream.read_to_end(&mut Vec::new()).map(drop);
        }
        Mode::ClosedEarly => return stream.read_exact(&mut [0; 16]),
        _ => {}
    }
    let request = read_request(&mut stream)?;
    requests.lock().push(request);
    let good = b"HTTP/1.1 201 Created\r\nLocation: abcDEF123\r\nContent-Type: application/json\r\nContent-Length: 19\r\n\r\n{\"key\":\"abcDEF123\"}";
    match mode {
        Mode::Ok => stream.write_all(good),
        Mode::OnceInTrouble | Mode::OnceTooLarge if number > 0 => stream.write_all(good),
        Mode::Slow => {
            for byte in good {
                stream.write_all(&[*byte])?;
                thread::sleep(Duration::from_millis(30));
            }
            Ok(())
        }
        Mode::Status(status) => {
            let text = "§cno\u{7}";
            write!(
                stream,
                "HTTP/1.1 {status} No\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            )
        }
        Mode::OnceInTrouble => stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
        Mode::OnceTooLarge => stream.write_all(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n"),
        Mode::EndlessBody => {
            stream.write_all(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            loop {
                stream.write_all(b"400\r\n")?;
                stream.write_all(&[b'x'; 1024])?;
                stream.write_all(b"\r\n")?;
            }
        }
        Mode::Garbage => stream.write_all("§c\u{7}<html>this is no HTTP at all\r\n\r\n".as_bytes()),
        Mode::NoKey => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"key\":\"a/../b\"}"),
        Mode::Redirect => {
            stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/steal\r\nContent-Length: 0\r\n\r\n")
        }
        Mode::Hang | Mode::ClosedEarly | Mode::WrongCertificate | Mode::Flaky => Ok(()),
    }
}

fn read_request(stream: &mut TcpStream) -> std::io::Result<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Request { head, body })
}

fn certificate() -> Arc<rustls::ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    Arc::new(config)
}

/// Shakes hands as far as the other side lets us.
fn handshake(mut stream: TcpStream, config: Arc<rustls::ServerConfig>) -> std::io::Result<()> {
    let mut connection = rustls::ServerConnection::new(config).map_err(std::io::Error::other)?;
    connection.complete_io(&mut stream).map(drop)
}
