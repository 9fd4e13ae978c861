//! What becomes of a profile when the server that takes uploads behaves in every way it can, and how long the server thread is held up by it.

mod bytebin;
mod ticking;

use std::io::Read;
use std::time::{Duration, Instant};

use bytebin::{Bytebin, Mode};
use endstone_spark::export::pb;
use endstone_spark::model::ProfilePlace;
use endstone_spark::session::{
    Control, Destination, Ended, ExportStep, Notice, Refusal, Requester, StartRequest, StopRequest,
};
use prost::Message;
use ticking::Server;

#[test]
fn an_upload_arrives_as_the_viewer_wants_it_and_gives_a_link() {
    for mode in [Mode::Ok, Mode::Slow, Mode::OnceInTrouble] {
        let bytebin = Bytebin::start(mode);
        let mut server = Server::new(&bytebin.url);
        server.start();
        assert_eq!(server.stop(Destination::AsStarted), Ok(Ended::Session));
        let link = "http://localhost:9/viewer/abcDEF123".to_owned();
        assert_eq!(
            server.until(|notice| matches!(notice, Notice::Uploaded { .. } | Notice::UploadFailed { .. })),
            Notice::Uploaded { link: link.clone() },
            "{mode:?}"
        );
        server.settle();
        assert_eq!(server.files().len(), 0, "{mode:?}");
        assert_eq!(server.places(), [ProfilePlace::Link(link)]);
        assert!(
            server.has_said("Uploading ") && server.has_said("to 127.0.0.1"),
            "{:?}",
            server.said
        );

        let requests = bytebin.requests();
        assert_eq!(requests.len(), if mode == Mode::OnceInTrouble { 2 } else { 1 });
        let request = requests.last().unwrap();
        let head = request.head.to_lowercase();
        assert!(head.starts_with("post /post http/1.1\r\n"), "{head}");
        for line in [
            "content-type: application/x-spark-sampler\r\n",
            "content-encoding: gzip\r\n",
            concat!("user-agent: endstone-spark/", env!("CARGO_PKG_VERSION"), "\r\n"),
        ] {
            assert!(head.contains(line), "{head}");
        }
        listed(&request.head);
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&request.body[..])
            .read_to_end(&mut bytes)
            .unwrap();
        let data = pb::SamplerData::decode(&bytes[..]).unwrap();
        assert_eq!(data.metadata.unwrap().comment, "a test");
        assert!(!data.threads.is_empty());
    }
}

/// Every header is one that docs/privacy.md names.
fn listed(head: &str) {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/privacy.md");
    let page = std::fs::read_to_string(page).unwrap().to_lowercase();
    for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap().to_lowercase();
        assert!(page.contains(&format!("`{name}`")), "{line}");
    }
}

/// What an owner reads when it does not work, word for word.
const FAILURES: &[(Mode, &str, usize)] = &[
    (Mode::Status(413), "it is too large for 127.0.0.1", 1),
    (
        Mode::Status(429),
        "127.0.0.1 has had too many uploads from here; it takes more in some minutes",
        1,
    ),
    (Mode::Status(404), "127.0.0.1 refused it (HTTP status 404)", 1),
    (Mode::Status(500), "127.0.0.1 is in trouble (HTTP status 500)", 2),
    (Mode::ClosedEarly, "127.0.0.1 broke the connection off", 2),
    (
        Mode::EndlessBody,
        "the answer of 127.0.0.1 was not understood; is bytebinUrl right?",
        1,
    ),
    (
        Mode::Garbage,
        "the answer of 127.0.0.1 was not understood; is bytebinUrl right?",
        1,
    ),
    (
        Mode::NoKey,
        "the answer of 127.0.0.1 was not understood; is bytebinUrl right?",
        1,
    ),
    (
        Mode::Redirect,
        "127.0.0.1 sent us elsewhere, which is not followed; is bytebinUrl right?",
        1,
    ),
    (
        Mode::WrongCertificate,
        "127.0.0.1 does not prove who it is: its certificate is not from an authority that browsers trust",
        1,
    ),
    (Mode::Hang, "127.0.0.1 went silent for 10 s", 1),
];

#[test]
fn whatever_the_server_does_the_profile_is_saved_and_the_reason_told() {
    for (mode, reason, connections) in FAILURES {
        let bytebin = Bytebin::start(*mode);
        let mut server = Server::new(&bytebin.url);
        server.start();
        server.longest = Duration::ZERO;
        let begin = Instant::now();
        server.stop(Destination::AsStarted).unwrap();
        server.until(|notice| matches!(notice, Notice::Saved { .. } | Notice::SaveFailed { .. }));
        let took = begin.elapsed();
        server.settle();
        let stop = if reason.ends_with('?') { "" } else { "." };
        let told = format!("[⚡] The profile was not uploaded: {reason}{stop} It is saved to a file instead.");
        assert!(server.said.contains(&told), "{mode:?}: {:#?}", server.said);
        assert!(server.has_said("Saved plugins/spark/profiles/"), "{:?}", server.said);
        assert_eq!(server.files().len(), 1, "{mode:?}");
        assert_eq!(server.files()[0].metadata.as_ref().unwrap().comment, "a test");
        assert!(matches!(&server.places()[..], [ProfilePlace::File(_)]), "{mode:?}");
        assert_eq!(bytebin.connections(), *connections, "{mode:?}");
        for line in &server.said {
            assert!(!line.chars().any(|c| c.is_control() || c == '§'), "{line:?}");
        }
        println!(
            "{mode:?}: saved after {:.1} s, longest tick's work {} µs",
            took.as_secs_f64(),
            server.longest.as_micros()
        );
        // The next session works.
        server.start();
        server.service.cancel(&Requester::Console).unwrap();
        server.until(|notice| *notice == Notice::Cancelled);
        server.settle();
    }
}

#[test]
fn nobody_at_the_other_end_is_told_in_plain_words() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (url, reason) in [
        (format!("http://127.0.0.1:{port}"), "127.0.0.1 cannot be reached"),
        (
            "https://spark.invalid".to_owned(),
            "spark.invalid was not found: is this machine connected to the internet?",
        ),
    ] {
        let mut server = Server::new(&url);
        server.start();
        server.stop(Destination::Server).unwrap();
        let told = server.until(|notice| matches!(notice, Notice::UploadFailed { .. }));
        assert_eq!(
            told,
            Notice::UploadFailed {
                reason: reason.to_owned()
            }
        );
        server.settle();
        assert_eq!(server.files().len(), 1);
    }
}

/// A session whose upload hangs.
fn hanging(bytebin: &Bytebin) -> Server {
    let mut server = Server::new(&bytebin.url);
    server.start();
    server.stop(Destination::AsStarted).unwrap();
    until_uploading(&mut server, bytebin);
    server
}

fn until_uploading(server: &mut Server, bytebin: &Bytebin) {
    let end = Instant::now() + Duration::from_secs(30);
    while !matches!(server.service.info().exporting, Some(ExportStep::Uploading { .. })) || bytebin.connections() == 0 {
        server.tick();
        assert!(Instant::now() < end, "{:?}", server.said);
    }
}

#[test]
fn an_upload_can_be_broken_off() {
    let bytebin = Bytebin::start(Mode::Hang);
    // For a file.
    let mut server = hanging(&bytebin);
    assert!(matches!(
        server.service.info().exporting,
        Some(ExportStep::Uploading { bytes, .. }) if bytes > 100
    ));
    assert!(matches!(
        server.stop(Destination::AsStarted),
        Err(Refusal::Exporting(ExportStep::Uploading { .. }))
    ));
    let begin = Instant::now();
    assert_eq!(server.stop(Destination::File), Ok(Ended::Upload));
    assert!(
        matches!(server.stop(Destination::File), Err(Refusal::Exporting(_))),
        "once is enough"
    );
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    println!("saved {} ms after it was asked for", begin.elapsed().as_millis());
    server.settle();
    assert_eq!(server.files().len(), 1);
    assert!(!server.has_said("was not uploaded"), "{:?}", server.said);
    drop(server);
    // For nothing.
    let mut server = hanging(&bytebin);
    assert_eq!(server.service.cancel(&Requester::Console), Ok(Ended::Upload));
    server.until(|notice| *notice == Notice::Cancelled);
    server.settle();
    assert_eq!(server.files().len(), 0);
    assert!(server.places().is_empty());
    drop(server);
    // For the end of the plugin.
    let mut server = hanging(&bytebin);
    let begin = Instant::now();
    assert!(server.service.shutdown(), "within its limit");
    println!("disabled within {} ms", begin.elapsed().as_millis());
    server.tick();
    assert!(
        server.has_said("the plugin is being disabled") && server.has_said("Saved "),
        "{:?}",
        server.said
    );
    assert_eq!(server.files().len(), 1);
}

#[test]
fn a_second_stop_while_the_first_is_at_work_says_so() {
    let mut server = Server::new("http://127.0.0.1:9");
    let request = |to| StopRequest {
        to,
        comment: None,
        requested_by: Requester::Console,
    };
    let start = StartRequest {
        save_to_file: true,
        comment: Some("from the start".to_owned()),
        ..StartRequest::new(4_000, Requester::Console)
    };
    server.service.start(start).unwrap();
    // Still starting: one order to end it is enough.
    assert_eq!(server.service.stop(request(Destination::AsStarted)), Ok(Ended::Session));
    let second = server.service.stop(request(Destination::AsStarted));
    assert!(
        matches!(second, Err(Refusal::EndingAlready | Refusal::Exporting(_))),
        "{second:?}"
    );
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    // What was said at the start holds.
    assert!(!server.has_said("Uploading"), "{:?}", server.said);
    assert_eq!(server.files()[0].metadata.as_ref().unwrap().comment, "from the start");
}

/// A session that was stopped for a file, whose profile is kept because a file is in the folder's place; that file.
fn kept(server: &mut Server) -> std::path::PathBuf {
    let profiles = server.folder.path().join("plugins/spark/profiles");
    std::fs::create_dir_all(profiles.parent().unwrap()).unwrap();
    std::fs::write(&profiles, "in the way").unwrap();
    server.start();
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    profiles
}

#[test]
fn a_profile_that_was_kept_can_be_uploaded() {
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = Server::new(&bytebin.url);
    kept(&mut server);
    assert!(
        server.has_said("stop --save-to-file, or /spark profiler upload to upload it."),
        "{:?}",
        server.said
    );
    assert_eq!(server.stop(Destination::Server), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Uploaded { .. }));
    server.settle();
    assert_eq!(bytebin.requests().len(), 1);
    assert_eq!(server.stop(Destination::File), Err(Refusal::NotRunning));
}

#[test]
fn a_kept_profile_that_was_meant_for_a_file_is_not_uploaded_unasked() {
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = Server::new(&bytebin.url);
    let profiles = kept(&mut server);
    // By a stop for it alone.
    assert_eq!(server.stop(Destination::AsStarted), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    assert_eq!(bytebin.connections(), 0);
    // Nor with the next session, whose own profile is.
    server.start();
    assert_eq!(server.stop(Destination::AsStarted), Ok(Ended::Session));
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    assert!(server.has_said("The profile is here: "), "{:?}", server.said);
    assert_eq!(bytebin.requests().len(), 1);
    assert_eq!(server.service.info().unsaved, 1);
    std::fs::remove_file(&profiles).unwrap();
    assert_eq!(server.stop(Destination::AsStarted), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!((bytebin.requests().len(), server.files().len()), (1, 1));
}

#[test]
fn a_comment_can_be_given_to_a_kept_profile_and_info_tells_of_it_during_the_next_session() {
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = Server::new(&bytebin.url);
    let profiles = kept(&mut server);
    server.start();
    let info = server.service.info();
    assert_eq!((info.unsaved, info.running.is_some()), (1, true));
    server.stop(Destination::AsStarted).unwrap();
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    std::fs::remove_file(&profiles).unwrap();
    let request = StopRequest {
        to: Destination::File,
        comment: Some("said later".to_owned()),
        requested_by: Requester::Console,
    };
    assert_eq!(server.service.stop(request), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files()[0].metadata.as_ref().unwrap().comment, "said later");
}

#[test]
fn a_profile_that_is_too_large_for_the_server_keeps_no_other_from_it() {
    let bytebin = Bytebin::start(Mode::OnceTooLarge);
    let mut server = Server::new(&bytebin.url);
    let profiles = kept(&mut server);
    server.start();
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::SaveFailed { kept: 2, .. }));
    server.settle();
    std::fs::remove_file(&profiles).unwrap();
    assert_eq!(server.stop(Destination::Server), Ok(Ended::Wait(2)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert!(
        server.has_said("it is too large for 127.0.0.1") && server.has_said("The profile is here: "),
        "{:?}",
        server.said
    );
    assert_eq!((bytebin.requests().len(), server.files().len()), (2, 1));
}

#[test]
fn an_upload_that_is_thrown_away_takes_no_kept_profile_with_it() {
    let bytebin = Bytebin::start(Mode::Hang);
    let mut server = Server::new(&bytebin.url);
    let profiles = kept(&mut server);
    server.start();
    server.stop(Destination::AsStarted).unwrap();
    until_uploading(&mut server, &bytebin);
    assert_eq!(server.service.cancel(&Requester::Console), Ok(Ended::Upload));
    server.until(|notice| *notice == Notice::Cancelled);
    server.settle();
    assert_eq!(server.service.info().unsaved, 1);
    std::fs::remove_file(&profiles).unwrap();
    assert_eq!(server.stop(Destination::AsStarted), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
}
