use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use object::read::ReadCache;

use super::*;
use crate::symbol::elf::Elf;
use crate::symbol::open::{ModuleFile, read_vdso};

const SOURCE: &str = r#"
namespace game { struct Level { int depth; __attribute__((noinline)) int tick(int); }; int Level::tick(int n) { return n + depth; } }
static __attribute__((noinline, used)) int helper(int n) { return n * 3; }
extern "C" int entry(int n) { game::Level level{n}; return level.tick(helper(n)); }
#ifdef CALL_OUT
extern "C" char *getenv(const char *);
extern "C" int outward(int n) { return getenv("HOME")[0] + n; }
#endif
extern "C" char zeroes[400u << 20];
char zeroes[400u << 20];
"#;

/// A library built by the system's compiler.
struct Library {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn library(options: &[&str]) -> Library {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.cpp");
    let path = folder.path().join("libsample.so.1");
    std::fs::write(&source, SOURCE).unwrap();
    let built = Command::new("c++")
        .args(["-shared", "-fPIC", "-O1", "-mcmodel=large", "-o"])
        .arg(&path)
        .arg(&source)
        .args(options)
        .status()
        .unwrap();
    assert!(built.success());
    Library { folder, path }
}

impl Library {
    fn module(&self) -> Module {
        let file = ReadCache::new(ModuleFile::open(&self.path).unwrap());
        Module {
            id: ModuleId::new(1),
            path: self.path.clone(),
            avma: 0x7000_0000..0x7100_0000,
            base_svma: 0,
            build_id: Elf::parse(&file).unwrap().build_id().unwrap(),
            device: 0,
            inode: std::fs::metadata(&self.path).unwrap().ino(),
        }
    }

    /// Start and size of every function by `nm`.
    fn functions(&self) -> Vec<(u64, u64, String)> {
        let output = Command::new("nm")
            .args(["--print-size", "--defined-only"])
            .arg(&self.path)
            .output()
            .unwrap();
        let parse = |line: &str| {
            let mut words = line.split_whitespace();
            let (start, size, kind, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
            let number = |word| u64::from_str_radix(word, 16).unwrap();
            (kind.eq_ignore_ascii_case("t")).then(|| (number(start), number(size), name.to_owned()))
        };
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(parse)
            .collect()
    }
}

fn function(library: &Library, name: &str) -> (u64, u64) {
    let functions = library.functions();
    let found = functions.iter().find(|function| function.2.contains(name)).unwrap();
    (found.0, found.1)
}

#[test]
fn functions_are_named_within_their_bounds_and_nowhere_else() {
    let library = library(&["-Wl,--build-id"]);
    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    for (mangled, name) in [
        ("Level4tick", "game::Level::tick"),
        ("helper", "helper"),
        ("entry", "entry"),
    ] {
        let (start, size) = function(&library, mangled);
        assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some(name));
        assert_eq!(symbolizer.resolve(&module, start + size - 1).as_deref(), Some(name));
        assert_ne!(symbolizer.resolve(&module, start + size).as_deref(), Some(name));
        assert_ne!(symbolizer.resolve(&module, start - 1).as_deref(), Some(name));
    }
    assert_eq!(symbolizer.resolve(&module, 0), None);
    assert_eq!(symbolizer.resolve(&module, u64::MAX), None);
    assert!(symbolizer.problem(&module).is_none());
}

#[test]
fn a_stripped_library_names_only_what_it_exports() {
    let library = library(&["-Wl,--build-id"]);
    let (start, size) = function(&library, "helper");
    let (exported, _) = function(&library, "entry");
    assert!(Command::new("strip").arg(&library.path).status().unwrap().success());
    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.resolve(&module, start), None);
    assert_eq!(symbolizer.resolve(&module, exported).as_deref(), Some("entry"));
    // All addresses of the nameless function stand for its first.
    for rva in [start, start + 1, start + size - 1] {
        assert_eq!(symbolizer.function_start(&module, rva), Some(start));
    }
    assert_ne!(symbolizer.function_start(&module, start + size), Some(start));
    assert_eq!(symbolizer.function_start(&module, u64::MAX), None);
}

#[test]
fn a_separate_debug_file_of_the_same_build_names_the_rest() {
    let library = library(&["-Wl,--build-id"]);
    let module = library.module();
    let (start, _) = function(&library, "helper");
    let id = module.build_id.as_ref().unwrap().to_string();
    let root = library.folder.path().join("debug");
    let folder = root.join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    let debug = folder.join(format!("{}.debug", &id[2..]));
    assert!(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .arg(&library.path)
            .arg(&debug)
            .status()
            .unwrap()
            .success()
    );
    assert!(Command::new("strip").arg(&library.path).status().unwrap().success());
    assert_eq!(Symbolizer::new().resolve(&module, start), None);
    assert_eq!(
        Symbolizer::with_debug_root(&root).resolve(&module, start).as_deref(),
        Some("helper")
    );

    // Another build's file under this build's name is not believed.
    let other = self::library(&["-Wl,--build-id=0x0011223344"]);
    std::fs::copy(&other.path, &debug).unwrap();
    assert_eq!(Symbolizer::with_debug_root(&root).resolve(&module, start), None);
}

fn run(program: &str, arguments: &[&std::ffi::OsStr]) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}

#[test]
fn a_debug_file_is_found_by_the_name_in_the_library() {
    for place in ["", ".debug", "root"] {
        let library = library(&["-Wl,--build-id"]);
        let (start, _) = function(&library, "helper");
        let root = library.folder.path().join("root");
        let folder = match place {
            "root" => root.join(library.folder.path().strip_prefix("/").unwrap()),
            place => library.folder.path().join(place),
        };
        std::fs::create_dir_all(&folder).unwrap();
        let debug = folder.join("sample.debug");
        run(
            "objcopy",
            &["--only-keep-debug".as_ref(), library.path.as_ref(), debug.as_ref()],
        );
        run("strip", &[library.path.as_ref()]);
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run("objcopy", &[link.as_ref(), library.path.as_ref()]);
        let module = library.module();
        let mut symbolizer = Symbolizer::with_debug_root(&root);
        assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some("helper"), "{place}");

        let other = self::library(&["-Wl,--build-id=0x0011223344"]);
        std::fs::copy(&other.path, &debug).unwrap();
        assert_eq!(Symbolizer::with_debug_root(&root).resolve(&module, start), None);
    }
}

#[test]
fn the_table_packed_into_a_stripped_library_names_the_rest() {
    let library = library(&["-Wl,--build-id"]);
    let (start, size) = function(&library, "helper");
    let (exported, _) = function(&library, "entry");
    let table = library.folder.path().join("table");
    run(
        "objcopy",
        &["--only-keep-debug".as_ref(), library.path.as_ref(), table.as_ref()],
    );
    let mut packed = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
    packed.write_all(&std::fs::read(&table).unwrap()).unwrap();
    std::fs::write(library.folder.path().join("table.xz"), packed.finish().unwrap()).unwrap();
    let section = format!(".gnu_debugdata={}/table.xz", library.folder.path().display());
    run("strip", &[library.path.as_ref()]);
    run(
        "objcopy",
        &["--add-section".as_ref(), section.as_ref(), library.path.as_ref()],
    );

    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some("helper"));
    assert_ne!(symbolizer.resolve(&module, start + size).as_deref(), Some("helper"));
    assert_eq!(symbolizer.resolve(&module, exported).as_deref(), Some("entry"));
}

/// Leaves nothing but the debug information.
fn strip_symbols(library: &Library) {
    run(
        "objcopy",
        &[
            "--remove-section=.symtab".as_ref(),
            "--remove-section=.strtab".as_ref(),
            "--strip-all".as_ref(),
            "-w".as_ref(),
            "--keep-section=.debug_*".as_ref(),
            library.path.as_ref(),
        ],
    );
}

#[test]
fn debug_information_without_a_symbol_table_names_functions() {
    let library = library(&["-Wl,--build-id", "-g", "-gz=none"]);
    let functions = [
        ("helper", "helper"),
        ("Level4tick", "game::Level::tick"),
        ("entry", "entry"),
    ];
    let places: Vec<(u64, u64)> = functions.iter().map(|(name, _)| function(&library, name)).collect();
    strip_symbols(&library);
    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    for ((start, size), (_, name)) in places.into_iter().zip(functions) {
        assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some(name));
        assert_eq!(symbolizer.resolve(&module, start + size - 1).as_deref(), Some(name));
        assert_ne!(symbolizer.resolve(&module, start + size).as_deref(), Some(name));
    }
}

#[test]
fn compressed_debug_information_is_unpacked() {
    let library = library(&["-Wl,--build-id", "-g", "-gz=zlib"]);
    let (start, size) = function(&library, "helper");
    strip_symbols(&library);
    let listing = Command::new("readelf")
        .args(["-SW"])
        .arg(&library.path)
        .output()
        .unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let compressed =
        |line: &&str| line.contains(".debug_") && line.split_whitespace().any(|word| word == "C" || word == "MSC");
    assert!(listing.lines().any(|line| compressed(&line)), "{listing}");
    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some("helper"));
    assert_eq!(symbolizer.resolve(&module, start + size - 1).as_deref(), Some("helper"));
    assert_ne!(symbolizer.resolve(&module, start + size).as_deref(), Some("helper"));
}

#[test]
fn modules_read_together_are_those_read_one_by_one() {
    let libraries: Vec<Library> = (0..3).map(|_| library(&["-Wl,--build-id"])).collect();
    let mut modules: Vec<Module> = libraries.iter().map(Library::module).collect();
    for (number, module) in modules.iter_mut().enumerate() {
        module.id = ModuleId::new(number as u32);
    }
    modules[1].path = "/nowhere/at/all".into();
    modules[1].build_id = None;
    let modules: Vec<Arc<Module>> = modules.into_iter().map(Arc::new).collect();
    let (start, _) = function(&libraries[0], "helper");
    let mut symbolizer = Symbolizer::new();
    symbolizer.prepare_on(3, &modules);
    let names: Vec<Option<String>> = modules.iter().map(|module| symbolizer.resolve(module, start)).collect();
    assert_eq!(names, [Some("helper".to_owned()), None, Some("helper".to_owned())]);
    assert!(symbolizer.problem(&modules[1]).is_some());
}

#[test]
fn linkage_stubs_are_named_after_where_they_lead() {
    let library = library(&["-Wl,--build-id", "-Wl,-z,lazy", "-mcmodel=small", "-DCALL_OUT"]);
    let listing = Command::new("objdump").arg("-d").arg(&library.path).output().unwrap();
    let listing = String::from_utf8(listing.stdout).unwrap();
    let line = listing.lines().find(|line| line.ends_with("<getenv@plt>:")).unwrap();
    let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let module = library.module();
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.resolve(&module, start).as_deref(), Some("getenv@plt"));
    assert_eq!(symbolizer.resolve(&module, start + 15).as_deref(), Some("getenv@plt"));
    assert_ne!(symbolizer.resolve(&module, start + 16).as_deref(), Some("getenv@plt"));
}

#[test]
fn a_file_that_was_replaced_gives_no_names() {
    let library = library(&["-Wl,--build-id"]);
    let mut module = library.module();
    let (start, _) = function(&library, "entry");
    module.build_id = BuildId::new(&[1, 2, 3]);
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.resolve(&module, start), None);
    assert!(matches!(symbolizer.problem(&module), Some(SymbolError::Replaced)));

    // A module without a build id in memory whose file has one.
    module.id = ModuleId::new(2);
    module.build_id = None;
    assert_eq!(symbolizer.resolve(&module, start), None);
}

#[test]
fn without_build_ids_the_inode_decides() {
    let library = library(&["-Wl,--build-id=none"]);
    let mut module = library.module();
    let (start, _) = function(&library, "entry");
    assert_eq!(module.build_id, None);
    assert_eq!(Symbolizer::new().resolve(&module, start).as_deref(), Some("entry"));
    module.inode += 1;
    assert_eq!(Symbolizer::new().resolve(&module, start), None);
}

#[test]
fn files_that_are_no_libraries_are_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.so");
    std::fs::write(&text, "#!/bin/sh\n").unwrap();
    let mut symbolizer = Symbolizer::new();
    for (number, path) in [
        text.as_path(),
        &folder.path().join("missing.so"),
        folder.path(),
        Path::new("[heap]"),
        Path::new(""),
    ]
    .iter()
    .enumerate()
    {
        let module = Module {
            id: ModuleId::new(number as u32 + 1),
            path: path.to_path_buf(),
            avma: 0..1,
            base_svma: 0,
            build_id: None,
            device: 0,
            inode: 0,
        };
        assert_eq!(symbolizer.resolve(&module, 1), None);
        assert_eq!(symbolizer.resolve(&module, 2), None);
        assert!(symbolizer.problem(&module).is_some(), "{}", path.display());
        assert_eq!(symbolizer.problems.len(), number + 1);
    }
}

#[test]
fn damaged_files_give_an_error_or_names_and_never_a_panic() {
    let library = library(&["-Wl,--build-id=none"]);
    let module = library.module();
    let good = std::fs::read(&library.path).unwrap();
    let file = File::options().write(true).open(&library.path).unwrap();
    let mut seed = 1_u64;
    for _ in 0..300 {
        for _ in 0..8 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Headers, section headers and symbols are where damage matters.
            let at = if seed & 1 == 0 {
                (seed >> 33) % 4096
            } else {
                good.len() as u64 - 1 - (seed >> 33) % 8192
            };
            file.write_all_at(&[(seed >> 24) as u8], at).unwrap();
        }
        let mut symbolizer = Symbolizer::new();
        for rva in (0..0x3000).step_by(64) {
            symbolizer.resolve(&module, rva);
        }
        file.write_all_at(&good, 0).unwrap();
    }
    for length in [0, 10, 64, 4096, good.len() / 2, good.len() - 1] {
        file.set_len(length as u64).unwrap();
        Symbolizer::new().resolve(&module, 0x1100);
        (&file).write_all(&[]).unwrap();
        file.write_all_at(&good, 0).unwrap();
    }
}

#[test]
fn the_kernels_library_is_read_from_memory() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let address = |text| u64::from_str_radix(text, 16).unwrap();
    let mut module = Module {
        id: ModuleId::new(1),
        path: PathBuf::from("[vdso]"),
        avma: address(start)..address(end),
        base_svma: 0,
        build_id: None,
        device: 0,
        inode: 0,
    };
    // What the loader says of it ends with the loaded segment, before the section headers.
    let sections = u64::from_le_bytes(read_vdso(&module).unwrap()[40..48].try_into().unwrap());
    module.avma.end = module.avma.start + sections.min(module.avma.end - module.avma.start - 1);
    module.build_id = Elf::parse(&read_vdso(&module).unwrap()[..])
        .unwrap()
        .build_id()
        .unwrap();
    let mut symbolizer = Symbolizer::new();
    let names: Vec<String> = (0..end_rva(&module))
        .step_by(16)
        .filter_map(|rva| symbolizer.resolve(&module, rva))
        .collect();
    assert!(
        names.iter().any(|name| name.contains("clock_gettime")),
        "{names:?} {:?}",
        symbolizer.problem(&module)
    );

    // An address where nothing is mapped is an error, not a crash.
    module.avma = 0..4096;
    assert!(matches!(read_vdso(&module), Err(SymbolError::Unreadable(_))));
}

fn end_rva(module: &Module) -> u64 {
    module.avma.end - module.avma.start
}

/// The running test binary: a big file with a full table, Rust names, and everything the linker does to it.
#[test]
fn this_programs_own_functions_are_found() {
    let path = std::env::current_exe().unwrap();
    let file = ReadCache::new(ModuleFile::open(&path).unwrap());
    let elf = Elf::parse(&file).unwrap();
    let (mut functions, mut text) = (Vec::new(), Vec::new());
    elf.functions(&mut functions, &mut text).unwrap();
    assert!(functions.len() > 1000);
    let module = Module {
        id: ModuleId::new(1),
        inode: std::fs::metadata(&path).unwrap().ino(),
        path,
        avma: 0..1,
        base_svma: 0,
        build_id: elf.build_id().unwrap(),
        device: 0,
    };
    let base = std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .find(|line| line.ends_with(module.path.to_str().unwrap()))
        .map(|line| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap())
        .unwrap();
    let address = demangle as *const () as usize as u64;
    let name = Symbolizer::new().resolve(&module, address - base).unwrap();
    assert_eq!(name, "endstone_spark::symbol::demangle::demangle");
}

#[test]
fn no_file_is_read_after_the_deadline() {
    let deadline = Deadline::default();
    let library = library(&["-Wl,--build-id"]);
    let module = library.module();
    let (start, _) = function(&library, "entry");
    let mut symbolizer = Symbolizer::new().until(deadline.clone());
    assert!(symbolizer.resolve(&module, start).is_some());
    assert!(!symbolizer.ran_out_of_time());
    deadline.set_in(std::time::Duration::ZERO);
    // What was read before is known.
    assert!(symbolizer.resolve(&module, start).is_some());
    assert!(!symbolizer.ran_out_of_time());
    let mut late = Symbolizer::new().until(deadline);
    assert_eq!(late.resolve(&module, start), None);
    assert!(late.ran_out_of_time());
    assert!(matches!(late.problem(&module), Some(SymbolError::NoTime)));
}
