//! Every message that the pages explain is one that the code prints.

use super::page::{quoted, read, root, rows, sources};

/// All string literals of the code, as far as it takes to find parts of them: quotes without backslash, lines that are continued put together.
fn printed() -> String {
    let text = sources(&root().join("src")).join("\n");
    let mut joined = String::with_capacity(text.len());
    let mut parts = text.split("\\\n");
    joined.push_str(parts.next().unwrap());
    for part in parts {
        joined.push_str(part.trim_start());
    }
    joined.replace("\\\"", "\"")
}

#[test]
fn what_is_explained_is_printed() {
    let printed = printed();
    let mut found = 0;
    for row in rows(&read("docs/owners.md"), "| what it says |") {
        for said in quoted(row[0]) {
            for part in said.split("...").map(str::trim).filter(|part| !part.is_empty()) {
                assert!(part.len() > 3, "{said} has a part too short to be looked for");
                assert!(printed.contains(part), "nothing prints {part:?} of {said:?}");
            }
            found += 1;
        }
    }
    assert!(found > 40, "{found} messages");
}

#[test]
fn every_kind_of_notice_and_refusal_has_its_own_words_on_the_page() {
    // Text that stands in only one place of these two files is what tells a message from the others.
    let owners = read("docs/owners.md");
    let says: Vec<String> = rows(&owners, "| what it says |")
        .iter()
        .flat_map(|row| quoted(row[0]).into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for file in ["src/command/notice.rs", "src/command/answer.rs"] {
        let text = read(file);
        // Arms without words of their own leave them to a function.
        for (kind, arm) in arms(&text).into_iter().filter(|(_, arm)| arm.contains('"')) {
            let covered = says
                .iter()
                .flat_map(|said| said.split("...").map(str::trim))
                .any(|part| part.len() > 3 && arm.contains(part));
            assert!(covered, "{file}: {kind} is not explained in docs/owners.md");
        }
    }
}

/// The arms of a match on notices or refusals: what it is called, and its text up to the next.
fn arms(text: &str) -> Vec<(String, String)> {
    let starts: Vec<usize> = ["        Notice::", "        Refusal::"]
        .iter()
        .flat_map(|start| {
            text.match_indices(&format!("\n{start}"))
                .map(|(at, _)| at)
                .collect::<Vec<_>>()
        })
        .collect();
    starts
        .iter()
        .enumerate()
        .map(|(index, start)| {
            let end = starts.get(index + 1).copied().unwrap_or(text.len());
            let arm = &text[*start..end];
            let kind = arm.trim().split(['(', ' ', '{']).next().unwrap();
            (kind.to_owned(), arm.replace("\\\"", "\""))
        })
        .collect()
}
