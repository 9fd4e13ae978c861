//! Links lead somewhere, and every page is reached from the README.

use std::collections::BTreeSet;
use std::path::Path;

use super::page::{pages, root};

/// The targets of a page's links, without what follows `#`.
fn targets(text: &str) -> Vec<&str> {
    text.match_indices("](")
        .map(|(at, _)| text[at + 2..].split(')').next().unwrap())
        .map(|target| target.split('#').next().unwrap())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_every_page_is_linked() {
    let mut linked = BTreeSet::from(["README.md".to_owned()]);
    let pages = pages();
    for (name, text) in &pages {
        let folder = Path::new(name).parent().unwrap();
        for target in targets(text) {
            let path = folder.join(target);
            assert!(root().join(&path).exists(), "{name}: {target} is not there");
            linked.insert(path.to_string_lossy().into_owned());
        }
    }
    for (name, _) in &pages {
        assert!(linked.contains(name), "no page has a link to {name}");
    }
}
