//! What becomes of a profile that cannot be written: it is told why, kept, and written or uploaded as soon as that can be done.

mod bytebin;
mod ticking;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytebin::{Bytebin, Mode};
use endstone_spark::model::ProfilePlace;
use endstone_spark::session::{Control, Destination, Ended, Notice, Refusal};
use ticking::Server;

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:9";

/// A session that was stopped for a file, and could not be saved; what was said.
fn unsaved(server: &mut Server) -> String {
    server.start();
    server.stop(Destination::File).unwrap();
    failed_again(server)
}

fn failed_again(server: &mut Server) -> String {
    let told = server.until(|notice| matches!(notice, Notice::SaveFailed { .. } | Notice::Saved { .. }));
    server.settle();
    let Notice::SaveFailed { reason, kept, .. } = told else {
        panic!("it was saved: {:?}", server.said)
    };
    assert_eq!((kept, server.service.info().unsaved), (1, 1));
    assert!(
        server.has_said("kept for another try: /spark profiler stop --save-to-file"),
        "{:?}",
        server.said
    );
    reason
}

/// The reason is gone: the next try writes it.
fn saved_at_last(server: &mut Server) {
    assert_eq!(server.stop(Destination::File), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
    assert_eq!(server.files()[0].metadata.as_ref().unwrap().comment, "a test");
    assert!(matches!(&server.places()[..], [ProfilePlace::File(_)]));
    assert_eq!(server.stop(Destination::File), Err(Refusal::NotRunning));
}

fn profiles(server: &Server) -> PathBuf {
    server.folder.path().join("plugins/spark/profiles")
}

/// A limit on the size of files, which is what a full quota looks like to one process. The limit is the process's; other tests write nothing meanwhile, because each
/// holds the session.
fn limit_files(bytes: libc::rlim_t) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

#[test]
fn a_limit_on_the_size_of_files_ends_nothing() {
    let mut server = Server::new(NOBODY);
    server.start();
    limit_files(100);
    server.stop(Destination::File).unwrap();
    let reason = failed_again(&mut server);
    limit_files(libc::RLIM_INFINITY);
    assert!(
        reason == "the server may not write files as large as this one, to plugins/spark/profiles",
        "{reason}"
    );
    assert_eq!(
        std::fs::read_dir(profiles(&server)).unwrap().count(),
        0,
        "nothing half is left"
    );
    saved_at_last(&mut server);
}

/// A file system of its own in a folder; needs the right to mount.
struct Mounted(CString);

impl Mounted {
    fn new(folder: &Path, options: &str) -> Option<Mounted> {
        std::fs::create_dir_all(folder).unwrap();
        let place = CString::new(folder.as_os_str().as_bytes()).unwrap();
        let options = CString::new(options).unwrap();
        // SAFETY: terminated strings.
        let mounted = unsafe {
            libc::mount(
                c"none".as_ptr(),
                place.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            eprintln!(
                "NOT RUN: mounting is not allowed here ({})",
                std::io::Error::last_os_error()
            );
            return None;
        }
        Some(Mounted(place))
    }

    fn remount(&self, flags: libc::c_ulong, options: &std::ffi::CStr) {
        // SAFETY: terminated strings.
        let done = unsafe {
            libc::mount(
                c"none".as_ptr(),
                self.0.as_ptr(),
                c"tmpfs".as_ptr(),
                libc::MS_REMOUNT | flags,
                options.as_ptr().cast(),
            )
        };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: a terminated string.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_full_disk_is_told() {
    let mut server = Server::new(NOBODY);
    let Some(disk) = Mounted::new(&profiles(&server), "size=4096,mode=700") else {
        return;
    };
    std::fs::write(profiles(&server).join("ballast"), [0; 4096]).unwrap();
    let reason = unsaved(&mut server);
    assert!(
        reason == "the disk is full: nothing could be written to plugins/spark/profiles",
        "{reason}"
    );
    disk.remount(0, c"size=16m");
    std::fs::remove_file(profiles(&server).join("ballast")).unwrap();
    saved_at_last(&mut server);
}

/// A session whose journal finds no room goes on, says so once, and is saved elsewhere.
fn goes_on_without_a_journal(server: &mut Server, reason: &str) {
    const TOLD: &str = "A crash of the server would lose this session: ";
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !server.has_said(TOLD) {
        server.tick();
        assert!(std::time::Instant::now() < end, "{:#?}", server.said);
    }
    for _ in 0..100 {
        server.tick();
    }
    let before = server.service.info().running.unwrap().samples;
    while server.service.info().running.unwrap().samples <= before {
        server.tick();
        assert!(std::time::Instant::now() < end, "no more samples after {before}");
    }
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
    let told: Vec<&String> = server.said.iter().filter(|line| line.contains(TOLD)).collect();
    assert!(told.len() == 1 && told[0].contains(reason), "{told:?}");
}

fn journal_bytes(server: &Server) -> u64 {
    let files = harness::journal_files(server.folder.path()).unwrap();
    files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum()
}

#[test]
fn a_disk_that_is_too_full_for_a_journal_costs_the_journal_alone() {
    let mut server = Server::new(NOBODY);
    let recovery = server.folder.path().join("plugins/spark/recovery");
    let Some(disk) = Mounted::new(&recovery, "size=16m,mode=700") else {
        return;
    };
    server.start();
    while journal_bytes(&server) == 0 {
        server.tick();
    }
    // It fills up while the session runs: down to the last page.
    let mut ballast = std::fs::File::create(recovery.join("ballast")).unwrap();
    while std::io::Write::write(&mut ballast, &[0; 4096]).is_ok() {}
    goes_on_without_a_journal(&mut server, "the disk is full");
    drop(disk);
}

#[test]
fn a_disk_that_is_mounted_read_only_is_told() {
    let mut server = Server::new(NOBODY);
    let Some(disk) = Mounted::new(&profiles(&server), "mode=700") else {
        return;
    };
    disk.remount(libc::MS_RDONLY, c"");
    let reason = unsaved(&mut server);
    assert!(reason == "plugins/spark/profiles is on a read-only disk", "{reason}");
    disk.remount(0, c"");
    saved_at_last(&mut server);
}

/// Takes the right to write everywhere from this thread, and from those that it starts, while it lives. Root has that right, and tests often run as root.
struct Unprivileged {
    had: libc::c_int,
}

impl Unprivileged {
    fn new() -> Unprivileged {
        const NOBODY: libc::uid_t = 65_534;
        // SAFETY: no pointers. The user for files is the thread's own, not the process's, and root's rights on files go and come with it.
        let had = unsafe {
            match libc::geteuid() {
                0 => libc::setfsuid(NOBODY),
                own => libc::setfsuid(own),
            }
        };
        Unprivileged { had }
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        // SAFETY: no pointers.
        unsafe { libc::setfsuid(self.had as libc::uid_t) };
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_told() {
    let mut server = Server::new(NOBODY);
    let folder = profiles(&server);
    std::fs::create_dir_all(&folder).unwrap();
    let all_of_it = folder.ancestors().take(4);
    all_of_it.for_each(|folder| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o555)).unwrap());
    let unprivileged = Unprivileged::new();
    std::fs::write(folder.join("mine"), "").expect_err("this thread may not write here");
    let reason = unsaved(&mut server);
    assert_eq!(reason, "the server may not write to plugins/spark/profiles");
    drop(unprivileged);
    for folder in folder.ancestors().take(4) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    saved_at_last(&mut server);
}

#[test]
fn a_folder_that_is_gone_is_made_again() {
    let mut server = Server::new(NOBODY);
    server.start();
    let _ = std::fs::remove_dir_all(server.folder.path().join("plugins"));
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
}

#[test]
fn a_folder_where_the_list_of_past_profiles_should_be_is_told_and_costs_no_profile() {
    let mut server = Server::new(NOBODY);
    let list = server.folder.path().join("plugins/spark/activity.json");
    std::fs::create_dir_all(list.join("below")).unwrap();
    server.start();
    server.stop(Destination::File).unwrap();
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
    assert!(
        server.has_said("The list of past profiles could not be written: ") && server.has_said("is not a regular file"),
        "{:?}",
        server.said
    );
    assert_eq!(
        server.places().len(),
        1,
        "until the next start it is in the list all the same"
    );
}

#[test]
fn a_file_in_the_folders_place_keeps_a_profile_that_cannot_be_uploaded_either() {
    let bytebin = Bytebin::start(Mode::Status(500));
    let mut server = Server::new(&bytebin.url);
    let profiles = server.folder.path().join("plugins/spark/profiles");
    std::fs::create_dir_all(profiles.parent().unwrap()).unwrap();
    std::fs::write(&profiles, "in the way").unwrap();
    server.start();
    server.stop(Destination::AsStarted).unwrap();
    let failed = server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    assert!(
        matches!(
            failed,
            Notice::SaveFailed {
                kept: 1,
                dropped: false,
                ..
            }
        ),
        "{failed:?}"
    );
    server.settle();
    assert!(
        server.has_said("is not a folder")
            && server.has_said("kept for another try: /spark profiler stop --save-to-file"),
        "{:?}",
        server.said
    );
    assert_eq!(server.service.info().unsaved, 1);
    // Again, and it fails again.
    assert_eq!(server.stop(Destination::File), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::SaveFailed { .. }));
    server.settle();
    // Mended.
    std::fs::remove_file(&profiles).unwrap();
    assert_eq!(server.stop(Destination::File), Ok(Ended::Wait(1)));
    server.until(|notice| matches!(notice, Notice::Saved { .. }));
    server.settle();
    assert_eq!(server.files().len(), 1);
    assert_eq!(server.stop(Destination::File), Err(Refusal::NotRunning));
    assert_eq!(server.service.info().unsaved, 0);
}
