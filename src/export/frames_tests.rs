use super::*;
use crate::export::test_support::{Names, code, module, snapshot};

fn one(key: FrameKey, show_interpreter: bool, function: Option<&str>) -> (FrameName, Named) {
    let mut snapshot = snapshot();
    snapshot.modules = vec![
        Arc::new(module(1, "/srv/bedrock_server")),
        Arc::new(module(2, "/usr/lib/libpython3.13.so.1.0")),
        Arc::new(module(3, "/srv/plugins/.local/my.plugin-0123456789abcdef.so")),
    ];
    snapshot.codes = vec![
        (
            CodeId::new(1),
            code("my_plugin.main", "MyPlugin.on_tick", "plugins/my_plugin/main.py", 57),
        ),
        (CodeId::new(2), code("", "", "", 0)),
        (CodeId::new(3), code("script.py", "f()", "x", 1)),
    ];
    let mut native = Names(|_: &Module, _: u64| function.map(str::to_owned));
    let mut names = FrameNames::new(&snapshot, &mut native, show_interpreter);
    let named = names.name(key);
    (names.names()[named.name as usize].clone(), named)
}

fn native(module: u32, rva: u64) -> FrameKey {
    FrameKey::Native {
        module: ModuleId::new(module),
        rva,
    }
}

fn shown(key: FrameKey, function: Option<&str>) -> (String, String) {
    let (name, _) = one(key, false, function);
    (name.class, name.method)
}

fn pair(class: &str, method: &str) -> (String, String) {
    (class.to_owned(), method.to_owned())
}

#[test]
fn native_frames_are_module_and_function() {
    assert_eq!(
        shown(native(1, 0x10), Some("Level::tick")),
        pair("bedrock_server", "Level::tick")
    );
    assert_eq!(
        shown(native(2, 0x10), Some("list_sort")),
        pair("libpython3_13", "list_sort")
    );
    assert_eq!(shown(native(3, 0x10), Some("work")), pair("my_plugin", "work"));
}

#[test]
fn extension_modules_are_named_as_python_imports_them() {
    let class = |path: &str| native_class(&module(1, path));
    assert_eq!(class("/usr/lib/_json.cpython-313-x86_64-linux-gnu.so"), "_json");
    assert_eq!(class("/usr/lib/_rust.abi3.so"), "_rust");
    assert_eq!(class("/usr/lib/ld-linux-x86-64.so.2"), "ld-linux-x86-64");
    assert_eq!(class("/srv/bedrock_server (deleted)"), "bedrock_server");
}

#[test]
fn native_frames_without_a_name_are_module_and_address() {
    assert_eq!(
        shown(native(1, 0x1234), None),
        pair("bedrock_server", "bedrock_server+0x1234")
    );
    assert_eq!(
        shown(native(9, 0x1234), None),
        pair("native", "code outside all known modules")
    );
    assert_eq!(
        shown(native(0, 0x7f00_0000), None),
        pair("native", "code outside all known modules")
    );
}

#[test]
fn python_frames_carry_their_file_and_first_line() {
    let (name, named) = one(FrameKey::Python(CodeId::new(1)), false, None);
    assert_eq!(
        (name.class.as_str(), name.method.as_str()),
        ("[Python] my_plugin.main", "MyPlugin.on_tick")
    );
    assert_eq!((name.desc.as_str(), name.line), ("plugins/my_plugin/main.py", 57));
    assert!(!named.glue);
}

#[test]
fn odd_python_names_are_presentable() {
    assert_eq!(
        shown(FrameKey::Python(CodeId::new(2)), None),
        pair("[Python] unknown", "unknown")
    );
    assert_eq!(
        shown(FrameKey::Python(CodeId::new(3)), None),
        pair("[Python] script_py", "f")
    );
    assert_eq!(
        shown(FrameKey::Python(CodeId::new(77)), None),
        pair("[Python] unknown", "unknown function")
    );
    assert_eq!(
        shown(FrameKey::Python(CodeId::NONE), None),
        pair("[Python] unknown", "unknown function")
    );
}

#[test]
fn stand_ins_say_what_they_are() {
    assert_eq!(
        shown(FrameKey::omitted(5000), None),
        pair("native", "4096 to 8191 native frames left out")
    );
    assert_eq!(
        shown(FrameKey::Ended(StackEnd::NoUnwindData), None),
        pair("native", "callers not found: no unwind data")
    );
    assert_eq!(shown(FrameKey::Truncated, None).0, "[spark]");
    let (_, named) = one(FrameKey::omitted(5000), false, None);
    assert_eq!(named.stands_for, 4096);
}

#[test]
fn only_the_interpreter_has_glue_and_it_can_be_kept() {
    assert!(one(native(2, 1), false, Some("_PyEval_Vector")).1.glue);
    assert!(!one(native(2, 1), true, Some("_PyEval_Vector")).1.glue);
    assert!(!one(native(2, 1), false, Some("list_sort")).1.glue);
    assert!(!one(native(1, 1), false, Some("_PyEval_Vector")).1.glue);
}

#[test]
fn long_names_are_cut() {
    let long = "x".repeat(1_000_000);
    let (class, method) = shown(native(1, 1), Some(&long));
    assert!(class.chars().count() + 1 + method.chars().count() < 300);
}
