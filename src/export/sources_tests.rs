use std::sync::Arc;

use super::*;
use crate::export::test_support::{Names, code, module, native, python, snapshot};

fn sources(codes: Vec<(CodeId, CodeInfo)>, plugins: &[Source]) -> Sources {
    let mut snapshot = snapshot();
    snapshot.modules = vec![Arc::new(module(1, "/srv/plugins/.local/other-00ff00ff00ff.so"))];
    snapshot.codes = codes;
    let mut native_names = Names(|_: &Module, _: u64| Some("work".to_owned()));
    let mut names = FrameNames::new(&snapshot, &mut native_names, false);
    for (id, _) in &snapshot.codes {
        names.name(python(id.get()));
    }
    names.name(native(1, 1));
    Sources::of(&names, &snapshot, plugins)
}

fn of_plugin(plugin: &str, code: CodeInfo) -> CodeInfo {
    CodeInfo {
        category: Category::Plugin,
        plugin: Some(plugin.to_owned()),
        ..code
    }
}

#[test]
fn a_class_of_two_owners_is_told_apart_by_method_and_file() {
    let codes = vec![
        (
            CodeId::new(1),
            of_plugin("a", code("util", "f", "plugins/a/util.py", 1)),
        ),
        (
            CodeId::new(2),
            of_plugin("b", code("util", "f", "plugins/b/util.py", 1)),
        ),
        (CodeId::new(3), code("util", "g", "site-packages/util.py", 1)),
    ];
    let sources = sources(codes, &[]);
    assert!(!sources.by_class.contains_key("[Python] util"));
    let methods: Vec<(&str, &str)> = sources
        .by_method
        .iter()
        .map(|(key, plugin)| (key.as_str(), plugin.as_str()))
        .collect();
    assert_eq!(
        methods,
        [
            ("[Python] util;f;plugins/a/util.py", "a"),
            ("[Python] util;f;plugins/b/util.py", "b")
        ]
    );
}

#[test]
fn libraries_have_no_source_of_their_own() {
    let sources = sources(
        vec![(CodeId::new(1), code("json", "loads", "json/__init__.py", 1))],
        &[],
    );
    assert!(!sources.by_class.contains_key("[Python] json"));
}

#[test]
fn a_plugin_that_nobody_listed_is_listed() {
    let sources = sources(
        vec![(
            CodeId::new(1),
            of_plugin("Late", code("late", "f", "plugins/late.py", 1)),
        )],
        &[],
    );
    assert_eq!(sources.by_class["[Python] late"], "Late");
    assert_eq!(sources.metadata["late"].name, "Late");
    assert_eq!(sources.by_class["other"], "other");
    assert_eq!(sources.metadata["other"].version, "unknown");
}
