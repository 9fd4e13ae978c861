//! The ways an upload takes: through the proxy that the environment names, and into a connection that takes nothing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use endstone_spark::model::WebAddress;
use endstone_spark::upload::{Content, UploadError, Uploader};
use parking_lot::Mutex;

/// The environment and the number of open files are the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How an upload ends.
fn end(uploader: &Uploader, server: &str, body: Vec<u8>) -> (UploadError, Duration) {
    let begin = Instant::now();
    let upload = uploader
        .begin(&WebAddress::parse(server).unwrap(), Content::Profile, body.into())
        .unwrap();
    let outcome = upload.wait(Duration::from_secs(60)).expect("it ends");
    (outcome.unwrap_err(), begin.elapsed())
}

#[test]
fn the_proxy_of_the_environment_is_asked_but_not_for_this_machine() {
    let _alone = ONE_AT_A_TIME.lock();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let _ = stream.write_all(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n");
            if asked.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                return;
            }
        }
    });
    // SAFETY: whatever reads variables in this process does so through the standard library, which locks them.
    unsafe { std::env::set_var("HTTPS_PROXY", &proxy) };
    let uploader = Uploader::from_environment();
    let (error, _) = end(&uploader, "https://spark.invalid", b"body".to_vec());
    assert_eq!(
        error.to_string(),
        "the proxy that HTTPS_PROXY names could not connect us to spark.invalid"
    );
    let heads: Vec<String> = requests.try_iter().collect();
    assert_eq!(heads.len(), 2, "a second try is made: {heads:?}");
    assert!(
        heads[0].starts_with("CONNECT spark.invalid:443 HTTP/1.1\r\n"),
        "{heads:?}"
    );

    // Nobody listens on this port.
    let (error, _) = end(&uploader, "http://127.0.0.1:9", b"body".to_vec());
    assert_eq!(error, UploadError::Unreachable("127.0.0.1".to_owned()));
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn a_connection_that_takes_nothing_is_given_up() {
    let _alone = ONE_AT_A_TIME.lock();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let kept: Vec<_> = listener.incoming().collect();
        drop(kept);
    });
    let uploader = Uploader::from_environment();
    // More than all buffers between the two take.
    let (error, took) = end(&uploader, &address, vec![7; 64 << 20]);
    assert_eq!(error, UploadError::Stalled("127.0.0.1".to_owned()));
    println!("given up after {:.1} s", took.as_secs_f64());
}

#[test]
fn a_server_that_has_too_many_files_open_is_told_so() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is writable, then readable.
    let set = |limit: &libc::rlimit| unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    let uploader = Uploader::from_environment();
    assert_eq!(set(&libc::rlimit { rlim_cur: 3, ..limit }), 0);
    let by_number = end(&uploader, "http://127.0.0.1:9", b"body".to_vec()).0;
    let by_name = end(&uploader, "http://localhost:9", b"body".to_vec()).0;
    assert_eq!(set(&limit), 0);
    assert_eq!(
        (by_number, by_name),
        (UploadError::TooManyOpen, UploadError::TooManyOpen)
    );
}
