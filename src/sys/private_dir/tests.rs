//! What a private folder promises.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::limits::LEFTOVER_SECONDS;

fn names(name: &str) -> Vec<String> {
    vec![name.to_owned(), format!("2-{name}")]
}

fn write(dir: &PrivateDir, name: &str, text: &str) -> Result<PathBuf, PrivateDirError> {
    dir.write_new(names(name), |out| out.write_all(text.as_bytes()))
}

fn listing(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn folders_and_files_are_for_the_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("spark/profiles");
    let dir = PrivateDir::open(&path).unwrap();
    let file = write(&dir, "a", "text").unwrap();
    assert_eq!(
        (mode(&path), mode(path.parent().unwrap()), mode(&file)),
        (0o700, 0o700, 0o600)
    );
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "text");
}

#[test]
fn an_existing_folder_keeps_its_mode() {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    PrivateDir::open(root.path()).unwrap();
    assert_eq!(mode(root.path()), 0o755);
}

#[test]
fn an_existing_file_is_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    write(&dir, "a", "first").unwrap();
    assert_eq!(write(&dir, "a", "second").unwrap(), root.path().join("2-a"));
    let error = write(&dir, "a", "third").unwrap_err();
    assert!(matches!(error, PrivateDirError::NamesTaken { .. }), "{error}");
    assert_eq!(fs::read_to_string(root.path().join("a")).unwrap(), "first");
    assert_eq!(listing(root.path()), ["2-a", "a"]);
}

#[test]
fn without_the_system_call_the_name_is_reserved_first() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    fs::write(root.path().join("new"), "new").unwrap();
    fs::write(root.path().join("old"), "old").unwrap();
    assert_eq!(dir.rename_reserved("new", "old"), Err(Errno::EXIST));
    assert_eq!(dir.rename_reserved("new", "free"), Ok(()));
    assert_eq!(dir.rename_reserved("gone", "other"), Err(Errno::NOENT));
    assert_eq!(listing(root.path()), ["free", "old"]);
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    let put = |text: &str| dir.replace("list", |out| out.write_all(text.as_bytes()));
    assert_eq!(dir.read("list", 10).unwrap(), None);
    put("first").unwrap();
    put("second").unwrap();
    assert_eq!(dir.read("list", 6).unwrap().as_deref(), Some(&b"second"[..]));
    assert!(matches!(dir.read("list", 5), Err(PrivateDirError::TooLarge { .. })));
    let failed = dir.replace("list", |out| {
        out.write_all(b"half")?;
        Err(Errno::NOSPC.into())
    });
    assert!(matches!(failed, Err(PrivateDirError::DiskFull(_))));
    assert_eq!(fs::read_to_string(root.path().join("list")).unwrap(), "second");
    assert_eq!(
        (listing(root.path()), mode(&root.path().join("list"))),
        (vec!["list".to_owned()], 0o600)
    );
    fs::create_dir_all(root.path().join("folder/below")).unwrap();
    assert!(matches!(
        dir.replace("folder", |_| Ok(())),
        Err(PrivateDirError::NotAFile(_))
    ));
    assert!(matches!(dir.read("folder", 10), Err(PrivateDirError::NotAFile(_))));
    dir.rename("list", "aside").unwrap();
    assert_eq!(listing(root.path()), ["aside", "folder"]);
}

#[test]
fn a_link_is_neither_followed_nor_replaced() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("target");
    fs::create_dir(&target).unwrap();
    symlink(&target, root.path().join("link")).unwrap();
    let error = PrivateDir::open(&root.path().join("link")).unwrap_err();
    assert!(matches!(error, PrivateDirError::NotAFolder(_)), "{error}");

    let dir = PrivateDir::open(&target).unwrap();
    symlink("/nowhere", target.join("a")).unwrap();
    assert_eq!(write(&dir, "a", "text").unwrap(), target.join("2-a"));
    assert!(fs::symlink_metadata(target.join("a")).unwrap().is_symlink());
}

#[test]
fn a_file_in_the_folders_place_is_named() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("profiles");
    fs::write(&path, "").unwrap();
    for path in [path.clone(), path.join("below")] {
        let error = PrivateDir::open(&path).unwrap_err();
        assert!(error.to_string().contains("is not a folder"), "{error}");
    }
}

#[test]
fn names_stay_in_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    for name in ["../a", "", "..", "a/b", "a\0b"] {
        assert!(
            matches!(write(&dir, name, ""), Err(PrivateDirError::BadName(_))),
            "{name:?}"
        );
    }
    assert!(listing(root.path()).is_empty());
}

#[test]
fn a_failed_write_leaves_nothing_and_names_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    let failing = |errno: Errno| {
        dir.write_new(names("a"), |out| {
            out.write_all(b"half")?;
            Err(errno.into())
        })
        .unwrap_err()
    };
    assert!(matches!(failing(Errno::NOSPC), PrivateDirError::DiskFull(_)));
    assert!(matches!(failing(Errno::ROFS), PrivateDirError::ReadOnly(_)));
    assert!(matches!(failing(Errno::ACCESS), PrivateDirError::Denied(_)));
    assert!(failing(Errno::IO).to_string().contains("could not be written"));
    assert!(listing(root.path()).is_empty());
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_save() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * LEFTOVER_SECONDS as u64);
    for (name, is_old) in [
        (".7-0.tmp", true),
        (".8-0.tmp", false),
        (".mine.tmp", true),
        ("b", true),
    ] {
        let file = fs::File::create(root.path().join(name)).unwrap();
        if is_old {
            file.set_modified(old).unwrap();
        }
    }
    write(&dir, "a", "text").unwrap();
    assert_eq!(listing(root.path()), [".8-0.tmp", ".mine.tmp", "a", "b"]);
}

#[test]
fn a_folder_that_was_moved_is_still_the_one_written_to() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(&root.path().join("before")).unwrap();
    fs::rename(root.path().join("before"), root.path().join("after")).unwrap();
    write(&dir, "a", "text").unwrap();
    assert_eq!(listing(&root.path().join("after")), ["a"]);
}

#[test]
fn what_is_set_aside_replaces_nothing() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    for (number, aside) in [(1, "a"), (2, "2-a")] {
        fs::write(root.path().join("file"), number.to_string()).unwrap();
        assert_eq!(dir.set_aside("file", names("a")).unwrap(), aside);
        assert_eq!(fs::read_to_string(root.path().join(aside)).unwrap(), number.to_string());
    }
    fs::create_dir(root.path().join("file")).unwrap();
    assert!(matches!(
        dir.set_aside("file", names("a")),
        Err(PrivateDirError::NamesTaken { .. })
    ));
    assert_eq!(dir.set_aside("file", names("b")).unwrap(), "b");
    assert_eq!(listing(root.path()), ["2-a", "a", "b"]);
}

#[test]
fn a_link_that_leads_nowhere_is_no_missing_file() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    for target in ["gone", "list"] {
        symlink(target, root.path().join("list")).unwrap();
        assert!(
            matches!(dir.read("list", 10), Err(PrivateDirError::LeadsNowhere(_))),
            "{target}"
        );
        fs::remove_file(root.path().join("list")).unwrap();
    }
}

#[test]
fn a_file_that_grows_is_new_and_for_its_owner_and_only_files_are_opened() {
    let root = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(root.path()).unwrap();
    dir.create("a").unwrap().write_all(b"text").unwrap();
    assert_eq!(mode(&root.path().join("a")), 0o600);
    assert!(matches!(dir.create("a"), Err(PrivateDirError::NamesTaken { .. })));
    let mut text = String::new();
    dir.open_file("a").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    symlink(root.path().join("a"), root.path().join("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("pipe"), Mode::RWXU).unwrap();
    for name in ["link", "pipe"] {
        assert!(
            matches!(dir.open_file(name), Err(PrivateDirError::NotAFile(_))),
            "{name}"
        );
    }
    assert!(matches!(dir.open_file("none"), Err(PrivateDirError::Unreadable { .. })));
    assert!(matches!(dir.create("link"), Err(PrivateDirError::NamesTaken { .. })));
}
