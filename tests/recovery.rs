//! What a crash leaves is a profile after the next start. A crash at any moment is what a copy of the folder taken at that moment is: the process writes nothing
//! that it would take back.

#[path = "journal/independent.rs"]
mod independent;
mod ticking;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use endstone_spark::export::pb::SamplerData;
use endstone_spark::limits;
use endstone_spark::session::{Control, Destination, Notice, Requester, StartRequest, TickSample};
use endstone_spark::sys::{clock, thread};
use harness::journal_files;
use ticking::Server;

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:9";

fn recovery(folder: &Path) -> PathBuf {
    folder.join("plugins/spark/recovery")
}

fn set_aside(folder: &Path) -> usize {
    std::fs::read_dir(recovery(folder))
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|ending| ending == "unreadable")
        })
        .count()
}

/// Name and content of the journal of a session that was running when it was copied.
fn crash() -> (String, Vec<u8>) {
    let mut server = Server::new(NOBODY);
    server.start();
    for _ in 0..300 {
        server.tick();
    }
    let files = journal_files(server.folder.path()).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    let copy = std::fs::read(&files[0]).unwrap();
    server.service.cancel(&Requester::Console).unwrap();
    server.until(|notice| matches!(notice, Notice::Cancelled));
    server.settle();
    let counts = independent::count(&copy);
    assert!(counts.samples > 300 && counts.ticks > 100, "{counts:?}");
    (files[0].file_name().unwrap().to_str().unwrap().to_owned(), copy)
}

/// A server that finds this file at its start.
fn start_with(name: &str, content: &[u8]) -> Server {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(recovery(folder.path())).unwrap();
    std::fs::write(recovery(folder.path()).join(name), content).unwrap();
    Server::in_folder(NOBODY, folder)
}

fn until_done(server: &mut Server) -> Notice {
    server.service.recover();
    server.until(|notice| {
        matches!(
            notice,
            Notice::Recovered { .. } | Notice::NotRecovered(_) | Notice::NoRecovery(_)
        )
    })
}

fn until_said(server: &mut Server, text: &str) {
    while !server.has_said(text) {
        server.tick();
    }
}

fn until_gone(server: &mut Server) {
    while !journal_files(server.folder.path()).unwrap().is_empty() {
        server.tick();
    }
}

fn figure(profile: &SamplerData, group: &str, name: &str) -> u64 {
    let text = &profile.metadata.as_ref().unwrap().extra_platform_metadata[group];
    let group: serde_json::Value = serde_json::from_str(text).unwrap();
    group[name].as_u64().unwrap()
}

#[test]
fn cut_at_any_of_500_places_the_next_start_recovers_every_complete_record() {
    let (name, whole) = crash();
    let mut place = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..500 {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = (place >> 33) as usize % (whole.len() + 1);
        let cut = &whole[..length];
        let counts = independent::count(cut);
        let mut server = start_with(&name, cut);
        if counts.samples == 0 {
            // Too short for a profile, or even for a header: nothing to show.
            server.service.recover();
            until_gone(&mut server);
            assert!(server.files().is_empty());
        } else {
            let told = until_done(&mut server);
            let Notice::Recovered {
                samples, unreadable, ..
            } = told
            else {
                panic!("round {round}, cut at {length}: {told:?}");
            };
            assert_eq!(
                (samples, unreadable),
                (counts.samples, 0),
                "round {round}, cut at {length}"
            );
            until_gone(&mut server);
            let files = server.files();
            assert_eq!(files.len(), 1);
            assert_eq!(figure(&files[0], "Sampling", "samples"), counts.samples);
            assert_eq!(files[0].metadata.as_ref().unwrap().number_of_ticks as u64, counts.ticks);
            let millis: f64 = files[0].threads.iter().flat_map(|thread| &thread.times).sum();
            let booked = counts.micros as f64 / 1e3;
            assert!((millis - booked).abs() < 1.0, "{millis} and {booked}");
        }
        server.service.shutdown();
    }
}

#[test]
fn a_session_that_ends_well_leaves_no_journal() {
    for to in [Destination::File, Destination::AsStarted] {
        let mut server = Server::new(NOBODY);
        server.start();
        server.stop(to).unwrap();
        server.until(|notice| matches!(notice, Notice::Saved { .. }));
        server.settle();
        assert!(journal_files(server.folder.path()).unwrap().is_empty());
        server.service.recover();
        server.service.shutdown();
        assert!(!server.has_said("what it had sampled"), "{:?}", server.said);
        assert_eq!(server.files().len(), 1);
    }
}

#[test]
fn a_profile_that_is_not_saved_yet_keeps_its_journal() {
    let mut server = Server::new(NOBODY);
    let profiles = server.folder.path().join("plugins/spark/profiles");
    std::fs::create_dir_all(profiles.parent().unwrap()).unwrap();
    std::fs::write(&profiles, "in the way").unwrap();
    server.start();
    for _ in 0..100 {
        server.tick();
    }
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    assert_eq!(journal_files(server.folder.path()).unwrap().len(), 1);

    // The plugin's end cannot write it either: the next start does.
    server.service.shutdown();
    server.settle();
    assert_eq!(journal_files(server.folder.path()).unwrap().len(), 1);
    std::fs::remove_file(&profiles).unwrap();
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    drop(server);
    let mut server = Server::in_folder(NOBODY, folder);
    let told = until_done(&mut server);
    assert!(matches!(told, Notice::Recovered { .. }), "{told:?}");
    until_gone(&mut server);
    assert_eq!(server.files().len(), 1);
    server.service.shutdown();
}

#[test]
fn a_recovered_profile_that_cannot_be_saved_is_recovered_at_the_next_start() {
    let (name, whole) = crash();
    let mut server = start_with(&name, &whole);
    let profiles = server.folder.path().join("plugins/spark/profiles");
    std::fs::write(&profiles, "in the way").unwrap();
    let told = until_done(&mut server);
    assert!(
        matches!(&told, Notice::NotRecovered(why) if why.contains("next start")),
        "{told:?}"
    );
    server.service.shutdown();
    assert_eq!(journal_files(server.folder.path()).unwrap().len(), 1);
    std::fs::remove_file(&profiles).unwrap();
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    drop(server);
    let mut server = Server::in_folder(NOBODY, folder);
    assert!(matches!(until_done(&mut server), Notice::Recovered { .. }));
    server.service.shutdown();
}

#[test]
fn what_is_damaged_is_recovered_as_far_as_it_goes_and_kept() {
    let (name, whole) = crash();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    let mut server = start_with(&name, &damaged);
    let told = until_done(&mut server);
    let Notice::Recovered {
        samples, unreadable, ..
    } = told
    else {
        panic!("{told:?}")
    };
    assert!(samples > 0 && samples < independent::count(&whole).samples, "{samples}");
    assert_eq!(unreadable, 1);
    until_gone(&mut server);
    assert_eq!(set_aside(server.folder.path()), 1);
    assert!(figure(&server.files()[0], "Recovery", "records damaged") > 0);
    assert!(
        server
            .has_said("One file of it could not be read in full; it is kept as .unreadable in plugins/spark/recovery."),
        "{:?}",
        server.said
    );
    server.service.shutdown();
}

#[test]
fn what_cannot_be_read_at_all_is_set_aside_with_a_reason() {
    let (name, whole) = crash();
    let mut newer = whole.clone();
    newer[8] = 9;
    for (content, reason) in [
        (
            &b"not a journal, but quite long enough to be one"[..],
            "it is no journal",
        ),
        (&newer, "it is of a newer version (9)"),
        (&whole[..20], "its header is damaged"),
    ] {
        let mut server = start_with(&name, content);
        let told = until_done(&mut server);
        assert!(
            matches!(&told, Notice::NotRecovered(why) if why.contains(reason)),
            "{told:?}"
        );
        until_gone(&mut server);
        assert_eq!(set_aside(server.folder.path()), 1);
        assert!(server.files().is_empty());
        server.service.shutdown();
    }
}

#[test]
fn a_journal_that_ended_the_server_at_each_start_is_set_aside() {
    let (name, whole) = crash();
    let mut server = start_with(&name, &whole);
    let attempts = recovery(server.folder.path()).join("attempts");
    let session = name.split('-').next().unwrap();
    std::fs::write(&attempts, format!("{session} {}\n", limits::RECOVERY_ATTEMPTS)).unwrap();
    let told = until_done(&mut server);
    assert!(
        matches!(&told, Notice::NotRecovered(why) if why.contains("each of the last 3 times")),
        "{told:?}"
    );
    until_gone(&mut server);
    assert_eq!(set_aside(server.folder.path()), 1);
    // What the message says to do.
    let aside = name.replace(".journal", ".unreadable");
    assert!(
        server.has_said(&format!(
            "as {aside}. To have it tried again, name it .journal instead of .unreadable and restart the server"
        )),
        "{:?}",
        server.said
    );
    std::fs::rename(
        recovery(server.folder.path()).join(&aside),
        recovery(server.folder.path()).join(&name),
    )
    .unwrap();
    let told = until_done(&mut server);
    assert!(matches!(told, Notice::Recovered { .. }), "{told:?}");
    server.service.shutdown();
}

#[test]
fn crash_after_crash_the_newest_recovered_profiles_are_kept_and_the_others_named_as_they_go() {
    let (name, whole) = crash();
    let mut folder = tempfile::tempdir().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let most = limits::RECOVERED_PROFILES;
    for round in 1..=most + 3 {
        // The same journal each time: the same second, which is what names are made of.
        std::fs::create_dir_all(recovery(folder.path())).unwrap();
        std::fs::write(recovery(folder.path()).join(&name), &whole).unwrap();
        let mut server = Server::in_folder(NOBODY, folder);
        server.service.recover();
        let told = server.until(|notice| matches!(notice, Notice::Recovered { .. }));
        let Notice::Recovered { path, .. } = told else {
            panic!("{told:?}")
        };
        assert!(seen.insert(path.clone()), "{path:?} is used again");
        if round > most {
            until_said(
                &mut server,
                "Removed from plugins/spark/profiles to make room: recovered_",
            );
        }
        until_gone(&mut server);
        assert_eq!(server.has_said("to make room"), round > most, "round {round}");
        assert_eq!(server.files().len(), round.min(most));
        assert!(path.exists());
        server.service.shutdown();
        folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    }
}

#[test]
fn a_session_that_wanted_slow_ticks_only_is_recovered_with_those() {
    let mut server = Server::new(NOBODY);
    let request = StartRequest {
        only_ticks_over_millis: Some(100),
        ..StartRequest::new(1_000, Requester::Console)
    };
    server.service.start(request).unwrap();
    server.until(|notice| matches!(notice, Notice::Started { .. }));
    let slow = [150.0, 90.0, 400.0];
    let tick = |server: &Server, millis: f32| {
        server.service.on_tick(TickSample {
            at: clock::monotonic(),
            tid: thread::current_tid(),
            mspt: millis,
        });
    };
    for _ in 0..20 {
        server.tick();
    }
    for millis in slow {
        // The tick that begins now lasts that long, which the next one tells.
        tick(&server, 1.0);
        let end = Instant::now() + Duration::from_micros((millis * 1_000.0) as u64);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        tick(&server, millis);
        for _ in 0..20 {
            server.tick();
        }
    }
    // Until it is on the disk.
    let file = journal_files(server.folder.path()).unwrap().remove(0);
    let ticks = independent::count(&std::fs::read(&file).unwrap()).ticks;
    while independent::count(&std::fs::read(&file).unwrap()).ticks < ticks + 20 {
        server.tick();
    }
    let (name, copy) = (
        file.file_name().unwrap().to_str().unwrap().to_owned(),
        std::fs::read(&file).unwrap(),
    );
    server.service.cancel(&Requester::Console).unwrap();
    server.until(|notice| matches!(notice, Notice::Cancelled));
    server.settle();
    drop(server);
    let mut server = start_with(&name, &copy);
    let told = until_done(&mut server);
    assert!(matches!(told, Notice::Recovered { .. }), "{told:?}");
    assert!(server.has_said("Ticks over 100 ms: 2 of "), "{:?}", server.said);
    let profile = server.files().remove(0);
    assert_eq!(figure(&profile, "Slow ticks", "ticks kept"), 2);
    assert_eq!(figure(&profile, "Slow ticks", "longest tick, microseconds"), 400_000);
    let millis: f64 = profile.threads.iter().flat_map(|thread| &thread.times).sum();
    assert!((millis - 550.0).abs() < 60.0, "{millis}");
    server.service.shutdown();
}

/// A process that has taken the lock on a file, and waits.
struct Other(libc::pid_t);

impl Other {
    fn locking(file: &Path) -> Other {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(file.as_os_str().as_bytes()).unwrap();
        let mut pipe = [0; 2];
        // SAFETY: the child calls nothing but system calls, and ends without coming back.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let child = libc::fork();
            assert!(child >= 0);
            if child == 0 {
                let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600);
                let mut lock: libc::flock = std::mem::zeroed();
                lock.l_type = libc::F_WRLCK as libc::c_short;
                let taken = libc::fcntl(file, libc::F_SETLK, &raw const lock) as u8;
                libc::write(pipe[1], (&raw const taken).cast(), 1);
                loop {
                    libc::pause();
                }
            }
            let mut taken = 1_u8;
            assert_eq!(libc::read(pipe[0], (&raw mut taken).cast(), 1), 1);
            assert_eq!(taken, 0);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            Other(child)
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // SAFETY: our own child.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn a_second_server_in_the_folder_is_kept_out_and_profiles_without_a_journal() {
    let (name, whole) = crash();
    let mut server = start_with(&name, &whole);
    let other = Other::locking(&recovery(server.folder.path()).join("lock"));
    let told = until_done(&mut server);
    // Nothing is lost: what is there may be that server's.
    assert!(
        matches!(&told, Notice::NoRecovery(why) if why.contains("another server")),
        "{told:?}"
    );
    server.start();
    until_said(
        &mut server,
        "A crash of the server would lose this session: plugins/spark/recovery cannot be used: another server is using it.",
    );
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(
        journal_files(server.folder.path()).unwrap().len(),
        1,
        "the other server's"
    );
    // It dies, and with it its lock.
    drop(other);
    assert!(matches!(until_done(&mut server), Notice::Recovered { .. }));
    server.service.shutdown();
}

#[test]
fn a_journal_that_cannot_be_written_is_told_once_and_profiling_goes_on() {
    let mut server = Server::new(NOBODY);
    let folder = recovery(server.folder.path());
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    server.start();
    until_said(
        &mut server,
        "A crash of the server would lose this session: plugins/spark/recovery is not a folder",
    );
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(
        server.said.iter().filter(|line| line.contains("would lose")).count(),
        1,
        "{:?}",
        server.said
    );
    assert_eq!(server.files().len(), 1);
    server.service.shutdown();
}
