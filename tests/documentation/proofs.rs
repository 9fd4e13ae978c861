//! Pages that name a test for each of their lines: every such test exists.

use std::fs;

use super::page::{quoted, read, root, rows};

/// Each with the first cells of its tables' heads. The last column is that of the tests.
const PAGES: [(&str, &[&str]); 2] = [
    ("docs/bug-classes.md", &["| id |"]),
    ("docs/signal-safety.md", &["| rule |", "| step |"]),
];

/// Problems of one cell: files that are not there, and functions that are not in the file named before them.
fn problems(cell: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut file = ("nothing", String::new());
    for word in quoted(cell) {
        if word.ends_with(".rs") || word.ends_with(".py") {
            file = (word, fs::read_to_string(root().join(word)).unwrap_or_default());
            if file.1.is_empty() {
                problems.push(format!("there is no {word}"));
            }
        } else if word
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        {
            let keyword = if file.0.ends_with(".py") { "def" } else { "fn" };
            if !file.1.contains(&format!("{keyword} {word}(")) {
                problems.push(format!("{} has no {word}", file.0));
            }
        }
    }
    problems
}

#[test]
fn tests_that_pages_name_exist() {
    let mut wrong = Vec::new();
    for (page, heads) in PAGES {
        let text = read(page);
        let rows: Vec<Vec<&str>> = heads.iter().flat_map(|head| rows(&text, head)).collect();
        let lines = text.lines().filter(|line| line.starts_with("| ")).count();
        let known_heads = text
            .lines()
            .filter(|line| heads.iter().any(|head| line.starts_with(head)));
        assert_eq!(
            rows.len() + known_heads.count(),
            lines,
            "{page} has tables that are not looked at"
        );
        for row in rows {
            let (first, tests) = (row[0], row[row.len() - 1]);
            let excused = ["**not tested yet**", "**cannot be tested here**", "**does not apply**"]
                .iter()
                .any(|reason| tests.contains(reason));
            if !tests.contains(".rs`: `") && !excused {
                wrong.push(format!("{page}, {first}: no test, and no reason"));
            }
            wrong.extend(
                problems(tests)
                    .iter()
                    .map(|problem| format!("{page}, {first}: {problem}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tests_that_do_not_exist_are_found() {
    let here = "`tests/documentation/proofs.rs`: `problems`, `tests_that_pages_name_exist`; with `SPARK_TEST_CYCLES`";
    assert_eq!(problems(here), Vec::<String>::new());
    assert_eq!(
        problems(
            "`tests/documentation/proofs.rs`: `problem`; `tests/gone.rs`: `a`; `tests/programs/truth.py`: `collected`"
        ),
        [
            "tests/documentation/proofs.rs has no problem",
            "there is no tests/gone.rs",
            "tests/gone.rs has no a"
        ]
    );
}
