//! What a server answers to an upload, over a connection as it would come. A key is one, and every error fit to be shown.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use endstone_spark::limits;
use endstone_spark::model::WebAddress;
use endstone_spark::upload::{Content, UploadError, Uploader};

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus, presentable};

const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\0",
    b": ",
    b"HTTP/1.1 201 Created\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"\r\nLocation: ",
    b"\r\nContent-Length: ",
    b"\r\nTransfer-Encoding: chunked",
    b"\r\nContent-Encoding: gzip",
    b"\r\nConnection: keep-alive",
    b"\r\nSet-Cookie: a=b",
    b"ffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"{\"key\":",
    b"\"\\u0000\"",
    b"[[[[[[[[",
    b"/../",
    b"\xc2\xa7",
    b"\xff",
];

const BODY: &[u8] = b"what is uploaded";

struct Replies {
    seeds: Vec<Vec<u8>>,
    uploader: Uploader,
    keys: AtomicU64,
    errors: AtomicU64,
}

/// Takes the request, and answers with these bytes.
fn answer(mut stream: TcpStream, reply: &[u8]) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut part = [0; 4_096];
    while !request.ends_with(BODY) {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            count => request.extend(&part[..count]),
        }
    }
    stream.write_all(reply)?;
    stream.shutdown(Shutdown::Write)
}

impl Target for Replies {
    const TEST: &'static str = "replies::spoiled_answers_give_a_key_or_a_presentable_error";
    const INPUTS: u64 = 1_500;
    // One that is tried again waits a second.
    const THREADS: usize = 48;
    // Three stacks of 2 MiB for each: ours, the upload's, and that of whoever looks names up.
    const MEMORY_BYTES: u64 = 800 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let format = Format {
            numbers: Numbers::Text,
            extremes: &[100, 199, 204, 299, 304, 429, 500, 65_536, 65_537],
            words: WORDS,
            seeds: &self.seeds,
            longest: 128 << 10,
        };
        let mut reply = format.spoiled_seed(4, random);
        // Long headers or bodies.
        if random.once_in(50) {
            format.swell(&mut reply, 8_000, random);
        }
        reply
    }

    fn check(&self, input: &[u8]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = WebAddress::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let upload = self.uploader.begin(&server, Content::Profile, Arc::from(BODY)).unwrap();
        let mut connections = 0;
        let outcome = loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    connections += 1;
                    // It may hang up on us whenever it likes.
                    let _ = answer(stream, input);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            if let Some(outcome) = upload.wait(Duration::from_millis(1)) {
                break outcome;
            }
        };
        assert!(connections <= 2, "{connections} connections");
        // Relaxed, here and below: counts.
        match outcome {
            Ok(key) => {
                let key = key.as_str();
                assert!(limits::UPLOAD_KEY_CHARS.contains(&key.len()), "{key:?}");
                assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key:?}");
                self.keys.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(error != UploadError::Internal, "the upload's thread panicked");
                assert!(presentable(&text) && text.chars().count() < 1_000, "{text:?}");
                self.errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn finish(&self, inputs: u64) -> String {
        let (keys, errors) = (self.keys.load(Ordering::Relaxed), self.errors.load(Ordering::Relaxed));
        assert!(
            keys > inputs / 50 && errors > inputs / 50,
            "{keys} keys, {errors} errors"
        );
        format!("{keys} keys, {errors} errors")
    }
}

#[test]
fn spoiled_answers_give_a_key_or_a_presentable_error() {
    fuzz(&Replies {
        seeds: corpus("replies"),
        uploader: Uploader::from_environment(),
        keys: AtomicU64::new(0),
        errors: AtomicU64::new(0),
    });
}
