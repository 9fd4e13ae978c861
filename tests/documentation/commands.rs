//! Every command, alias, flag and permission is in docs/commands.md, and what that page, the README and the owners' guide name exists.
//!
//! What there is, the code says in three ways: the usages that are declared, what the parser offers when it refuses a flag, and the names that the code compares
//! flags with. They are compared with each other first.

use std::collections::{BTreeMap, BTreeSet};

use endstone_spark::command::{self, ParseError, parse};
use endstone_spark::session::Requester;

use super::page::{quoted, read, rows, sources};

/// Where they are listed.
const PAGE: &str = "docs/commands.md";

/// Commands that take flags.
const COMMANDS: [&str; 12] = [
    "profiler start",
    "profiler stop",
    "profiler upload",
    "profiler info",
    "profiler cancel",
    "tps",
    "health",
    "ping",
    "tickmonitor",
    "activity",
    "version",
    "help",
];

fn refusal(line: &str) -> Option<ParseError> {
    parse(&[line], &Requester::Console).err()
}

fn flags_in(text: &str) -> BTreeSet<String> {
    let is_end = |c: char| !(c.is_ascii_lowercase() || c == '-');
    text.match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with('-'))
        .map(|(at, _)| text[at + 2..].split(is_end).next().unwrap().to_owned())
        .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect()
}

/// What the parser offers for a command.
fn offered(command: &str) -> BTreeSet<String> {
    let error = refusal(&format!("{command} --no-such-flag")).unwrap().to_string();
    let (_, offer) = error.split_once("--no-such-flag.").expect("the flag is refused");
    flags_in(offer)
}

/// The words of a usage that stand in parentheses: the commands, and what may follow `profiler`.
fn declared_words() -> BTreeSet<String> {
    command::USAGES
        .iter()
        .flat_map(|usage| usage.split('(').skip(1))
        .flat_map(|rest| rest.split_once(')').unwrap().0.split('|'))
        .map(str::to_owned)
        .collect()
}

/// The first cells of the page's rows, by the command they are about.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = read(PAGE);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows(&page, "| command |") {
        let line = row[0].replace("... ", "/spark profiler ").replace("`/spark ", "");
        let line = line.trim_start_matches('`').replace("/spark ", "");
        let command = COMMANDS
            .into_iter()
            .find(|command| line.starts_with(command))
            .unwrap_or_else(|| panic!("{row:?} is about no command"));
        found.entry(command.to_owned()).or_default().extend(flags_in(row[0]));
    }
    found
}

#[test]
fn every_command_is_on_the_page_with_exactly_its_flags() {
    let documented = documented();
    for command in COMMANDS {
        if command == "help" {
            continue;
        }
        assert_eq!(documented.get(command), Some(&offered(command)), "{command}");
    }
}

#[test]
fn the_parser_offers_exactly_the_flags_that_the_code_knows() {
    let code = sources(&super::page::root().join("src/command"));
    let mut known = BTreeSet::new();
    for text in &code {
        for (_, block) in text
            .match_indices("match flag.name.as_str() {")
            .map(|(at, _)| text.split_at(at))
        {
            for line in block.lines().take_while(|line| !line.trim_start().starts_with("_ =>")) {
                if let Some((name, _)) = line
                    .trim_start()
                    .strip_prefix('"')
                    .and_then(|rest| rest.split_once('"'))
                {
                    known.insert(name.to_owned());
                }
            }
        }
        for (_, rest) in text
            .match_indices("flag.name != \"")
            .map(|(at, _)| text.split_at(at + 14))
        {
            known.insert(rest.split_once('"').unwrap().0.to_owned());
        }
    }
    let offered: BTreeSet<String> = COMMANDS.iter().flat_map(|command| offered(command)).collect();
    assert_eq!(offered, known);
    for command in COMMANDS {
        for flag in self::offered(command) {
            let error = refusal(&format!("{command} --{flag}"));
            let unknown = matches!(error, Some(ParseError::UnknownFlag { .. }));
            assert!(!unknown, "{command} offers --{flag} and does not take it");
        }
    }
}

#[test]
fn every_word_that_is_declared_is_a_command_and_on_the_page() {
    let page = read(PAGE);
    let words = declared_words();
    let actions = ["start", "stop", "upload", "info", "cancel"];
    for word in &words {
        let line = match actions.contains(&word.as_str()) {
            true => format!("profiler {word} x"),
            false => format!("{word} x"),
        };
        let error = refusal(&line);
        let unknown = matches!(error, Some(ParseError::UnknownModule(_)));
        let not_an_action = matches!(error, Some(ParseError::UnknownAction(ref action)) if action == word);
        assert!(!unknown && !not_an_action, "{line}: {error:?}");
        let said = [
            format!("`{word}`"),
            format!("/spark {word}"),
            format!("/spark profiler {word}"),
        ];
        assert!(
            word == "help" || said.iter().any(|said| page.contains(said)),
            "{word} is not on the page"
        );
    }
    for command in COMMANDS.iter().flat_map(|command| command.split(' ')) {
        assert!(words.contains(command), "{command} is not declared");
    }
}

#[test]
fn what_the_pages_for_owners_name_exists() {
    let mut flags: BTreeSet<String> = COMMANDS.iter().flat_map(|command| offered(command)).collect();
    // The older forms, which the page names.
    flags.extend(["stop", "upload", "cancel", "info"].map(str::to_owned));
    let words = declared_words();
    for (name, least) in [("README.md", 3), (PAGE, 10), ("docs/owners.md", 10)] {
        let page = read(name);
        let mut found = 0;
        for quote in page.lines().flat_map(quoted) {
            let Some(line) = quote.strip_prefix("/spark ") else {
                continue;
            };
            for word in line
                .split(' ')
                .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()))
            {
                assert!(words.contains(word), "{name}: {quote}");
                found += 1;
            }
            for flag in flags_in(line) {
                assert!(flags.contains(&flag), "{name}: {quote}");
            }
        }
        assert!(found > least, "{name} is not read");
    }
    for flag in flags_in(&read("docs/owners.md")) {
        assert!(flags.contains(&flag), "docs/owners.md: --{flag}");
    }
}

#[test]
fn every_permission_is_on_the_page_and_every_one_there_exists() {
    let page = read(PAGE);
    for permission in command::PERMISSIONS {
        assert!(page.contains(&format!("`{}`", permission.name)), "{}", permission.name);
    }
    let known = |name: &str| command::PERMISSIONS.iter().any(|permission| permission.name == name);
    for quote in page.lines().flat_map(quoted) {
        if quote.starts_with("spark.") || quote.starts_with("endstone.command") {
            assert!(known(quote), "{quote}");
        }
    }
}
