//! ELF files, with symbol tables, debug information, unwind data and what is packed into them. They are made of `symbols.cpp`; the comment at its end says how.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::limits::DEMANGLED_BYTES;
use endstone_spark::model::{BuildId, Module, ModuleId};
use endstone_spark::symbol::Symbolizer;
use tempfile::TempDir;

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus, rewrite};

/// The build id of those files that have one.
const BUILD_ID: [u8; 20] = *b"\x5e\xed\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23";
/// Names and marks that are looked for.
const WORDS: &[&[u8]] = &[
    b".gnu_debugdata\0",
    b".gnu_debuglink\0",
    b".debug_info\0",
    b".debug_abbrev\0",
    b".debug_str\0",
    b".debug_ranges\0",
    b".eh_frame\0",
    b".plt\0",
    b"_ZN6market4rankIlEET_S1_S1_\0",
    b"_RNvC6market4rank\0",
    b"_ZN4core3fmt5write17h0123456789abcdefE\0",
    b"only.debug\0",
    b"../up\0",
    b"\x7fELF\x02\x01\x01",
    b"\xfd7zXZ\0",
    b"\x78\x9c",
    b"GNU\0",
];

struct Symbols {
    seeds: Vec<Vec<u8>>,
    named: AtomicU64,
    unreadable: AtomicU64,
}

/// Where an input lies while it is read: as the module's file and as the debug file of the same build.
struct Place {
    folder: TempDir,
    file: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("module.so");
        fs::write(&file, "").unwrap();
        let id = BuildId::new(&BUILD_ID).unwrap().to_string();
        let debug = folder.path().join(".build-id").join(&id[..2]);
        fs::create_dir_all(&debug).unwrap();
        fs::hard_link(&file, debug.join(format!("{}.debug", &id[2..]))).unwrap();
        Place { folder, file }
    }
}

thread_local! {
    static PLACE: OnceCell<Place> = const { OnceCell::new() };
}

impl Symbols {
    fn format(&self) -> Format<'_> {
        Format {
            numbers: Numbers::Binary,
            extremes: &[24, 40, 56, 64, 512, 4_096, 192 << 20, 512 << 20, 2 << 30],
            words: WORDS,
            seeds: &self.seeds,
            longest: 64 << 10,
        }
    }

    fn resolve(&self, place: &Place, input: &[u8]) {
        rewrite(&place.file, input);
        let has_id = input.windows(BUILD_ID.len()).any(|bytes| bytes == BUILD_ID);
        let module = Module {
            id: ModuleId::new(1),
            path: place.file.clone(),
            avma: 0x10_0000..0x20_0000,
            base_svma: 0,
            build_id: has_id.then(|| BuildId::new(&BUILD_ID).unwrap()),
            device: 0,
            inode: fs::metadata(&place.file).unwrap().ino(),
        };
        let mut symbolizer = Symbolizer::with_debug_root(place.folder.path());
        let mut named = false;
        // All of the code, and what lies nowhere.
        let places = (0x300..0x500).step_by(7).chain([0, u64::MAX, 1 << 63]);
        for rva in places {
            if let Some(name) = symbolizer.resolve(&module, rva) {
                assert!(
                    name.len() <= DEMANGLED_BYTES + 4 && !name.contains(char::is_control),
                    "{name:?}"
                );
                named = true;
            }
            if let Some(start) = symbolizer.function_start(&module, rva) {
                assert!(start <= rva, "{start:#x} for {rva:#x}");
            }
        }
        let unreadable = symbolizer.problem(&module).is_some();
        assert!(!(named && unreadable), "names, and a reason why there are none");
        // Relaxed, here and below: counts.
        self.named.fetch_add(u64::from(named), Ordering::Relaxed);
        self.unreadable.fetch_add(u64::from(unreadable), Ordering::Relaxed);
    }
}

impl Target for Symbols {
    const TEST: &'static str = "symbols::damaged_elf_files_neither_panic_nor_take_memory";
    const INPUTS: u64 = 10_000;
    // Unpacking xz needs 65 MiB.
    const MEMORY_BYTES: u64 = 256 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let mut file = random.one_of(&self.seeds).clone();
        for _ in 0..=random.below(6) {
            let before = file.len();
            self.format().spoil(&mut file, random);
            // What moves everything behind it leaves nothing readable.
            if file.len() != before && !random.once_in(8) {
                file.resize(before, 0);
            }
        }
        file
    }

    fn check(&self, input: &[u8]) {
        PLACE.with(|place| self.resolve(place.get_or_init(Place::new), input));
    }

    fn finish(&self, inputs: u64) -> String {
        let named = self.named.load(Ordering::Relaxed);
        let unreadable = self.unreadable.load(Ordering::Relaxed);
        assert!(
            named > inputs / 4 && unreadable > inputs / 100,
            "{named} with names, {unreadable} unreadable"
        );
        format!("{named} had names, {unreadable} could not be read at all")
    }
}

#[test]
fn damaged_elf_files_neither_panic_nor_take_memory() {
    fuzz(&Symbols {
        seeds: corpus("symbols"),
        named: AtomicU64::new(0),
        unreadable: AtomicU64::new(0),
    });
}
