//! What is said of a Python function: its module, name, file and line, whose it is; for every way in which code comes to be. Each CPython runs in a
//! child process, which is this test binary again.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "python/session.rs"]
mod session;

use endstone_spark::limits::CODE_OBJECTS;
use endstone_spark::model::{Category, CodeInfo, PythonState};
use endstone_spark::python::Attribution;
use endstone_spark::shadow::ShadowTable;
use interpreter::Interpreter;

struct Session {
    python: &'static Interpreter,
    attribution: Attribution,
}

impl Session {
    fn begin() -> Self {
        Session {
            python: session::python(),
            attribution: session::session(),
        }
    }

    fn infos(&self) -> Vec<CodeInfo> {
        self.attribution.codes().into_iter().map(|(_, info)| info).collect()
    }

    /// The only function of this module and name.
    fn one(&self, module: &str, name: &str) -> CodeInfo {
        let all = self.infos();
        let found: Vec<_> = all
            .iter()
            .filter(|info| info.module == module && info.qualified_name == name)
            .collect();
        let of_module: Vec<_> = all.iter().filter(|info| info.module == module).collect();
        assert_eq!(found.len(), 1, "{module}: {name}, of {of_module:#?}");
        found[0].clone()
    }

    fn end(self) {
        session::detach(self.attribution);
    }
}

fn every_shape_has_its_qualified_name_and_line(session: &Session) {
    session.python.run("shapes()");
    for (name, line) in [
        ("shapes", 9),
        ("shapes.<locals>.Outer", 12),
        ("shapes.<locals>.Outer.method", 13),
        ("shapes.<locals>.Outer.method.<locals>.<lambda>", 14),
        ("shapes.<locals>.Outer.value", 16),
        ("shapes.<locals>.Outer.static", 20),
        ("shapes.<locals>.Outer.Inner", 24),
        ("shapes.<locals>.Outer.Inner.method", 25),
        ("shapes.<locals>.<genexpr>", 33),
        ("shapes.<locals>.coroutine", 35),
        ("shapes.<locals>.closure", 43),
    ] {
        let info = session.one("__main__", name);
        assert_eq!(
            (info.first_line, info.file.as_str(), info.category),
            (line, "<string>", Category::Unknown),
            "{name}"
        );
    }
}

fn made_code_is_named_by_its_globals_and_shows_no_path(session: &Session) {
    session.python.run("made()\ntwice()");
    assert_eq!(session.one("made_up.module", "by_exec").file, "<string>");
    assert_eq!(session.one("made_up.module", "<module>").first_line, 1);
    assert_eq!(session.one("evaluated", "<lambda>").file, "<string>");
    assert_eq!(session.one("<unknown>", "nameless").category, Category::Unknown);
    for (n, shown) in [
        "page.py",
        "<template page.html>",
        "relative/page.py",
        "page.py",
        "page.py",
        "page.py",
        "page.py",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(session.one("compiled", &format!("from_{n}")).file, shown);
    }
    assert_eq!(session.one("shop", "<module>").qualified_name, "<module>");
    assert_eq!(session.one("shop", "odd.function").file, "<string>");
    for info in session.infos() {
        let texts = [&info.module, &info.qualified_name, &info.file];
        assert!(texts.iter().all(|text| !text.contains("someone")), "{info:?}");
    }
    assert_eq!(session.one("first", "twice.<locals>.shared").first_line, 77);
    assert!(session.infos().iter().all(|info| info.module != "second"));
}

fn an_address_that_is_used_again_inherits_no_name(session: &Session) {
    session.python.run("reuse()");
    for n in [0, 1, 1_500, 2_999] {
        session.one("reuse", &format!("short_lived_{n}"));
    }
    let names = session.infos().into_iter().filter(|info| info.module == "reuse");
    let mut names: Vec<_> = names.map(|info| info.qualified_name).collect();
    names.retain(|name| name != "<module>");
    assert_eq!(names.len(), 3_000);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3_000);
}

fn frozen_modules_are_the_standard_librarys(session: &Session) {
    session.python.run("frozen()");
    let hello = session.one("__hello__", "main");
    assert_eq!(
        (hello.file.as_str(), hello.category),
        ("<frozen __hello__>", Category::StandardLibrary)
    );
    let find = session.one("importlib._bootstrap", "_find_and_load");
    assert_eq!(
        (find.file.as_str(), find.category),
        ("<frozen importlib._bootstrap>", Category::StandardLibrary)
    );
}

/// Before the session: three distributions, of which two are plugins, and a library of no distribution.
fn install(python: &Interpreter, root: &std::path::Path) {
    let root = root.display();
    python.run(&format!(
        "install_zip('{root}', 'endstone-zipped-shop', 'zipped_shop', 'zipped-shop')\n\
         install_zip('{root}', 'helper', 'zipped_helper')\n\
         install_library('{root}', 'borrowed')\n\
         install_editable('{root}', 'endstone-in-place', 'in_place', 'in_place')"
    ));
}

fn zipped_modules_belong_to_their_distribution(session: &Session) {
    session.python.run("work_in('zipped_shop')\nwork_in('zipped_helper')");
    let shop = session.one("zipped_shop", "work");
    assert_eq!(
        (shop.category, shop.plugin.as_deref(), shop.first_line),
        (Category::Plugin, Some("zipped_shop"), 4)
    );
    assert_eq!(shop.file, "plugins/endstone-zipped-shop.zip/zipped_shop/__init__.py");
    let helper = session.one("zipped_helper", "work");
    assert_eq!((helper.category, helper.plugin), (Category::Dependency, None));
    assert_eq!(helper.file, "plugins/helper.zip/zipped_helper/__init__.py");
    let parser = session.one("json", "loads");
    assert_eq!(parser.category, Category::StandardLibrary);
    assert!(
        parser.file.ends_with("/json/__init__.py") && parser.file.starts_with("python3."),
        "{}",
        parser.file
    );
    let importer = session.one("zipimport", "zipimporter.find_spec");
    assert_eq!(
        (importer.file.as_str(), importer.category),
        ("<frozen zipimport>", Category::StandardLibrary)
    );
}

fn a_plugin_installed_in_place_is_a_plugin(session: &Session) {
    session.python.run("work_in('in_place')");
    let work = session.one("in_place", "work");
    assert_eq!(
        (work.category, work.plugin.as_deref(), work.file.as_str()),
        (Category::Plugin, Some("in_place"), "in_place/__init__.py")
    );
}

/// As PYTHONPATH names it: on `sys.path`, and called like no folder of installed distributions.
fn a_folder_of_libraries_holds_dependencies(session: &Session) {
    session.python.run("work_in('borrowed')");
    let work = session.one("borrowed", "work");
    assert_eq!(
        (work.category, work.plugin.as_deref(), work.file.as_str()),
        (Category::Dependency, None, "borrowed/__init__.py")
    );
    let dump = session.one("_strptime", "_strptime");
    assert_eq!(dump.category, Category::StandardLibrary);
}

fn a_module_that_is_loaded_again_keeps_its_names(session: &Session) {
    session.python.run("work_in('in_place')\nreload_and_work('in_place')");
    // Two code objects, of which the same is said.
    session.one("in_place", "work");
}

/// The table of code objects is full: what is named keeps its name, nothing new is named, and the session says so.
fn a_full_table_keeps_what_it_has_and_says_so(session: &Session) {
    session.python.run(&format!("many({CODE_OBJECTS})\nafter_all()"));
    let diagnostics = session.attribution.diagnostics();
    let PythonState::Degraded(reason) = &diagnostics.state else {
        panic!("{:?}", diagnostics.state);
    };
    assert!(
        reason.contains("more than 65536 different Python functions; those seen later have no name"),
        "{reason}"
    );
    assert!(diagnostics.registration_failures >= 2, "{diagnostics:?}");
    let all = session.infos();
    assert_eq!(all.len(), CODE_OBJECTS);
    assert_eq!(diagnostics.codes.iter().sum::<u32>() as usize, CODE_OBJECTS);
    assert!(all.iter().any(|info| info.qualified_name == "many"));
    assert!(all.iter().all(|info| info.qualified_name != "after_all"));
    assert!(!ShadowTable::global().is_distrusted(), "the stacks are still true");
}

#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = session::start(&library);
    python.run(include_str!("programs/names.py"));
    let root = tempfile::tempdir().unwrap();
    install(python, root.path());

    let session = Session::begin();
    every_shape_has_its_qualified_name_and_line(&session);
    made_code_is_named_by_its_globals_and_shows_no_path(&session);
    an_address_that_is_used_again_inherits_no_name(&session);
    frozen_modules_are_the_standard_librarys(&session);
    zipped_modules_belong_to_their_distribution(&session);
    a_plugin_installed_in_place_is_a_plugin(&session);
    a_folder_of_libraries_holds_dependencies(&session);
    assert_eq!(session.attribution.diagnostics().state, PythonState::Active);
    session.end();

    let session = Session::begin();
    a_module_that_is_loaded_again_keeps_its_names(&session);
    a_full_table_keeps_what_it_has_and_says_so(&session);
    session.end();
    println!("child is done");
}

#[test]
fn functions_are_named_right_on_every_python() {
    pythons::in_children();
}
