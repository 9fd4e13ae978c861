//! The unwinder is right at every instruction: of compiled C of every kind, of the C library, of the loader, of Rust with an exception.

#[path = "native_support/steps.rs"]
mod steps;

use std::ffi::CString;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use endstone_spark::model::StackEnd;
use endstone_spark::native::current_modules_unwinder;

/// The same source, as compilers of servers and plugins treat it.
const WAYS: [&[&str]; 4] = [
    &["-O2"],
    &["-O0"],
    &["-O3", "-march=native", "-fno-plt"],
    &["-Os", "-fno-omit-frame-pointer", "-fcf-protection=full"],
];

fn build(number: usize, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/stepped.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libstepped{number}.so"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(compiler)
        .args(flags)
        // Calls are bound when they are first made, so that the loader's resolver is stepped through.
        .args(["-shared", "-fPIC", "-Wl,-z,lazy", "-o"])
        .args([&library, &source])
        .arg("-lm")
        .status()
        .unwrap();
    assert!(status.success(), "the C compiler that links Rust programs builds this");
    library
}

/// Loads a library for good and finds its two functions.
fn load(library: &Path) -> [extern "C" fn() -> u64; 2] {
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the functions have this type.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
        assert!(!handle.is_null(), "{}", library.display());
        [c"stepped_code", c"stepped_library"].map(|name| {
            let symbol = libc::dlsym(handle, name.as_ptr());
            assert!(!symbol.is_null());
            std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> u64>(symbol)
        })
    }
}

#[inline(never)]
fn throw(depth: u32) -> u32 {
    if depth == 0 {
        std::panic::resume_unwind(Box::new(1_u32));
    }
    throw(depth - 1) + black_box(1)
}

#[test]
fn every_instruction_unwinds_to_its_true_callers() {
    let libraries: Vec<_> = WAYS
        .iter()
        .enumerate()
        .map(|(number, flags)| load(&build(number, flags)))
        .collect();
    // What the exception's machinery loads and sets up at its first use.
    let _ = std::panic::catch_unwind(|| throw(1));
    let unwinder = current_modules_unwinder();
    let report = steps::compare(&unwinder, 1_000_000, &mut || {
        for [code, _] in &libraries {
            black_box(code());
        }
        black_box(libraries[0][1]());
        let mut map: std::collections::BTreeMap<String, Vec<u64>> = std::collections::BTreeMap::new();
        for n in 0..40_u64 {
            map.entry(format!("{}", n % 17)).or_default().push(n);
        }
        black_box(map);
        let _ = black_box(std::panic::catch_unwind(|| throw(5)));
    });
    println!("{report}");
    let wrong: Vec<_> = report.wrong.iter().filter(|(place, how)| !jumps(place, how)).collect();
    for (place, how) in &wrong {
        println!("{place}: {how:?}");
    }
    assert!(report.instructions > 10_000);
    assert!(wrong.is_empty(), "wrong at {} places", wrong.len());
    assert!(report.wrong.len() < 150, "{} instructions jump", report.wrong.len());
}

/// Just before they jump, `longjmp` and the throwing of exceptions are described as if the place they jump to had called them (libc), and the frame of
/// `_Unwind_RaiseException` holds the registers of the place it jumps to, which its callers' unwind data then takes for theirs (libgcc): no unwinder
/// can know better.
fn jumps(place: &str, how: &steps::Wrong) -> bool {
    let into_target = how.end == StackEnd::Root && how.found == how.agree + 1;
    place.starts_with("libgcc_s.so") || place.starts_with("libc.so") && into_target
}
