//! How files and other names are shown: without absolute paths and home folders, which tell who runs the server and where. Pure.
//!
//! `co_filename`, `co_qualname` and a module's `__name__` are texts that any program can set to anything, so a path is looked for in all of them:
//! with a scheme or a drive before it, with backslashes, behind other words, leading out of its folder, or with its beginning cut off.

/// What stands before or behind a path in a made-up name.
fn is_delimiter(character: char) -> bool {
    character.is_whitespace() || "<>()[]{}\"'`=,;:|".contains(character)
}

fn is_separator(character: char) -> bool {
    matches!(character, '/' | '\\')
}

/// The last part of a path, or `~` for somebody's home folder.
pub(super) fn last_part(path: &str) -> &str {
    let mut parts = path.split(is_separator).filter(|part| !part.is_empty());
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => "",
        (Some("root"), None, _) | (Some("home" | "Users"), Some(_), None) => "~",
        _ => path
            .trim_end_matches(is_separator)
            .rsplit(is_separator)
            .next()
            .unwrap_or_default(),
    }
}

/// Any name with the last part of each path in it that is absolute or leads out of its folder: `<template /srv/bds/page.html>` is
/// `<template page.html>`. Relative paths stay.
pub(super) fn without_paths(name: &str) -> String {
    if !name.contains(is_separator) {
        return name.to_owned();
    }
    let mut shown = String::with_capacity(name.len());
    for word in name.split_inclusive(is_delimiter) {
        let end = word.strip_suffix(is_delimiter).unwrap_or(word);
        let (before, path) = end.split_at(beginning_of_path(end));
        shown.push_str(before);
        shown.push_str(last_part(path));
        shown.push_str(&word[end.len()..]);
    }
    shown
}

/// Where in a word without delimiters a path begins that is not to be shown; the word's end if there is none.
fn beginning_of_path(word: &str) -> usize {
    let is_outside = |part: &str| part == "..";
    if word.contains(is_separator) && (word.starts_with('~') || word.split(is_separator).any(is_outside)) {
        return 0;
    }
    let mut before = None;
    for (index, character) in word.char_indices() {
        let is_relative = |before: char| before.is_alphanumeric() || before == '_';
        if is_separator(character) && !before.is_some_and(is_relative) && &word[..index] != "." {
            return index;
        }
        before = Some(character);
    }
    word.len()
}

/// A file's path in its shortest form: with `/` between the parts, and without `.`, `..` and doubled `/`. It begins with `/` if it is absolute or
/// nothing is known of where it begins: after a scheme or a drive, in a home folder, outside of the present one, or where it was cut.
pub(super) fn shortest(file: &str) -> String {
    let (is_url, path) = match file.split_once("://") {
        Some((_, path)) => (true, path),
        None => (false, file),
    };
    let has_drive = matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    let mut is_absolute = is_url || has_drive || path.starts_with(['/', '\\', '~', '…']);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(is_separator) {
        match part {
            "" | "." => {}
            ".." => is_absolute |= parts.pop().is_none(),
            part => parts.push(part),
        }
    }
    format!("{}{}", if is_absolute { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_in_names_are_cut_to_their_last_part() {
        for (name, shown) in [
            ("<string>", "<string>"),
            ("shop.main", "shop.main"),
            ("f.<locals>.<lambda>", "f.<locals>.<lambda>"),
            ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
            ("<template /srv/bds/page.html>", "<template page.html>"),
            ("<template file=/srv/bds/page.html>", "<template file=page.html>"),
            ("</srv/bds/page.html>", "<page.html>"),
            ("<attrs generated init shop.Offer>", "<attrs generated init shop.Offer>"),
            ("<and/or>", "<and/or>"),
            ("<pages/shop.html>", "<pages/shop.html>"),
            ("<./pages/shop.html>", "<./pages/shop.html>"),
            ("</>", "<>"),
            ("/home/alice/shop", "shop"),
            ("/home/alice", "~"),
            ("<config of /root/>", "<config of ~>"),
            ("file:///home/alice/x.py", "file:x.py"),
            (r"C:\Users\alice\x.py", "C:x.py"),
            (r"C:\Users\alice", "C:~"),
            ("~alice/x.py", "x.py"),
            ("../../alice/x.py", "x.py"),
            ("pages/../../alice/x.py", "x.py"),
            ("made-/home/alice/x.py", "made-x.py"),
        ] {
            assert_eq!(without_paths(name), shown, "{name}");
        }
    }

    #[test]
    fn paths_are_shortened_by_their_parts() {
        for (file, short) in [
            ("/srv/bds/./plugins//x.py", "/srv/bds/plugins/x.py"),
            ("/srv/plugins/../../home/x.py", "/home/x.py"),
            ("pages/x.py", "pages/x.py"),
            ("./pages/../x.py", "x.py"),
            ("../x.py", "/x.py"),
            ("pages/../../x.py", "/x.py"),
            ("file:///srv/x.py", "/srv/x.py"),
            ("https://host/x.py", "/host/x.py"),
            (r"C:\srv\x.py", "/C:/srv/x.py"),
            (r"pages\x.py", "pages/x.py"),
            ("~/x.py", "/~/x.py"),
            ("…srv/x.py", "/…srv/x.py"),
        ] {
            assert_eq!(shortest(file), short, "{file}");
        }
    }

    proptest! {
        #[test]
        fn a_home_folder_is_never_shown(
            before in "(file://|zip:|C:|<[a-z ]{0,6}|[a-z]{0,4}[ =:'\"(-]|[./]{0,6}/)?",
            separator in r"[/\\]{1,2}",
            parts in prop::collection::vec("[a-z0-9.]{1,6}", 1..5),
            after in "[>)' ]?",
        ) {
            let home = [&["home".to_owned(), "alice".to_owned()], &parts[..]].concat().join(&separator);
            let shown = without_paths(&format!("{before}{separator}{home}{after}"));
            prop_assert!(!shown.contains("alice") && !shown.contains("home"), "{}", shown);
        }
    }
}
