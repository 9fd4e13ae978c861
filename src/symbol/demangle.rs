//! Names as programmers write them.

use std::fmt::{self, Write};
use std::panic::catch_unwind;

use cpp_demangle::{DemangleOptions, Symbol};

use crate::limits::{DEMANGLED_BYTES, MANGLED_BYTES};

/// Endings that compilers append to a function's name for copies and parts of it.
const CLONE_SUFFIXES: &[&str] = &[
    "cold",
    "constprop",
    "hot",
    "isra",
    "llvm",
    "localalias",
    "lto_priv",
    "part",
    "resolver",
    "warm",
];

/// What the names of linkage stubs end in.
const STUB_SUFFIX: &str = "@plt";

/// The function's full name without parameters: `Level::tick` for `_ZN5Level4tickEv`, `core::fmt::write` for Rust's. Names that are not
/// mangled come back as they are, without the version and the compiler's clone suffixes. Any input gives a printable text of bounded length
/// that does not end in `()`.
pub fn demangle(symbol: &[u8]) -> String {
    let bounded = symbol.get(..MANGLED_BYTES).unwrap_or(symbol);
    let text = String::from_utf8_lossy(bounded);
    if let Some(target) = text
        .strip_suffix(STUB_SUFFIX)
        .filter(|target| !target.ends_with(STUB_SUFFIX))
    {
        return demangle(target.as_bytes()) + STUB_SUFFIX;
    }
    let plain = without_clone_suffix(without_version(&text));
    let mut name = rust_name(plain)
        .or_else(|| cpp_name(plain))
        .unwrap_or_else(|| plain.to_owned());
    if name.contains(char::is_control) {
        name = name.replace(char::is_control, "?");
    }
    while let Some(stripped) = name.strip_suffix("()") {
        name.truncate(stripped.len());
    }
    name
}

/// `memcpy` of `memcpy@@GLIBC_2.14`.
fn without_version(symbol: &str) -> &str {
    match symbol.find('@') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

/// `f` of `f.isra.0.cold`: to a reader they are one function.
fn without_clone_suffix(symbol: &str) -> &str {
    let ends_here = |at: &usize| {
        let word = symbol[at + 1..].split('.').next().unwrap_or_default();
        CLONE_SUFFIXES.contains(&word)
    };
    match symbol
        .match_indices('.')
        .map(|(at, _)| at)
        .filter(|at| *at > 0)
        .find(ends_here)
    {
        Some(at) => &symbol[..at],
        None => symbol,
    }
}

fn rust_name(symbol: &str) -> Option<String> {
    let legacy = symbol.starts_with("_ZN") && symbol.contains("17h");
    if !legacy && !symbol.starts_with("_R") {
        return None;
    }
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded::default();
    // `{:#}` leaves the hash out.
    write!(out, "{name:#}").ok()?;
    Some(out.text)
}

fn cpp_name(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") && !symbol.starts_with("___Z") {
        return None;
    }
    // The symbol comes from any file that the server loads; a fault in the parser must cost one name, not the profile.
    catch_unwind(|| {
        let parsed = Symbol::new(symbol).ok()?;
        let options = DemangleOptions::new().no_params().no_return_type();
        let mut out = Bounded::default();
        parsed.structured_demangle(&mut out, &options).ok()?;
        Some(out.text)
    })
    .ok()
    .flatten()
}

/// Refuses to grow beyond [`DEMANGLED_BYTES`]: back references let a short symbol expand without end.
#[derive(Default)]
struct Bounded {
    text: String,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.text.len() + piece.len() > DEMANGLED_BYTES {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(symbol: &str) -> String {
        demangle(symbol.as_bytes())
    }

    #[test]
    fn cpp_names_lose_their_parameters() {
        assert_eq!(name("_ZN5Level4tickEv"), "Level::tick");
        assert_eq!(
            name("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(name("_ZN3FooclEv"), "Foo::operator");
        assert_eq!(name("_ZNK3Foo3barEi"), "Foo::bar");
    }

    #[test]
    fn rust_names_lose_their_hash() {
        assert_eq!(name("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(
            name("_RNvCskwGfYPst2Cb_3foo16example_function"),
            "foo::example_function"
        );
    }

    #[test]
    fn c_names_stay() {
        assert_eq!(name("_PyEval_EvalFrameDefault"), "_PyEval_EvalFrameDefault");
        assert_eq!(name("main"), "main");
        assert_eq!(name(".hidden"), ".hidden");
    }

    #[test]
    fn versions_and_clone_suffixes_go() {
        assert_eq!(name("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(name("_ZN5Level4tickEv@plt"), "Level::tick@plt");
        assert_eq!(name("gen_send_ex2.constprop.0"), "gen_send_ex2");
        assert_eq!(name("list_sort.isra.0.cold"), "list_sort");
        assert_eq!(name("_ZN5Level4tickEv.part.3"), "Level::tick");
        assert_eq!(name("my.function"), "my.function");
    }

    #[test]
    fn a_symbol_that_expands_without_end_stays_as_it_is() {
        let mut symbol = "_Z1f".to_owned();
        symbol.push_str("N1AIiEE");
        for _ in 0..40 {
            symbol = format!("{symbol}NS_IS_S_EE");
        }
        assert!(name(&symbol).len() <= DEMANGLED_BYTES);
        assert!(name(&"x".repeat(1 << 20)).len() <= MANGLED_BYTES);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_printable_name(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let name = demangle(&bytes);
            prop_assert!(!name.contains(char::is_control));
        }

        #[test]
        fn any_mangled_looking_text_gives_a_bounded_name(text in "(_Z|_ZN|_R|_RNv|___Z)[A-Za-z0-9_$.@]{0,120}") {
            let name = name(&text);
            prop_assert!(name.len() <= DEMANGLED_BYTES.max(text.len()));
            prop_assert!(!name.ends_with("()"));
        }
    }
}
