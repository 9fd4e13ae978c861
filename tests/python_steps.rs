//! The unwinder is right at every instruction of a working interpreter: its evaluation loop or tail-called instructions, C functions of every kind, extensions
//! and the libraries below them, `ctypes` and `sqlite3` calling back into Python. One child process per CPython; see `native_support/steps.rs`.

#[path = "python/interpreter.rs"]
mod interpreter;
#[path = "python/pythons.rs"]
mod pythons;
#[path = "native_support/steps.rs"]
mod steps;

use endstone_spark::model::StackEnd;
use endstone_spark::native::current_modules_unwinder;
use interpreter::Interpreter;

/// The child: runs only when the parent asked for it.
#[test]
fn child() {
    let Some(library) = pythons::library_of_child() else {
        return;
    };
    let python = Interpreter::start(&library);
    python.run(include_str!("programs/stepped.py"));
    let unwinder = current_modules_unwinder();
    let limit = std::env::var("SPARK_TORTURE_STEPS").map_or(60_000, |steps| steps.parse().unwrap());
    let (mut steps, mut instructions) = (0, 0);
    let mut wrong = std::collections::BTreeMap::new();
    for part in ["objects()", "libraries()", "natives()", "machinery()"] {
        let report = steps::compare(&unwinder, limit, &mut || python.run(part));
        println!("{part}: {report}");
        (steps, instructions) = (steps + report.steps, instructions + report.instructions);
        wrong.extend(report.wrong);
    }
    // Code that libffi makes at run time belongs to no module and has no unwind data: a reason is given there, which is all that can be asked.
    wrong.retain(|place, how| {
        !(place.starts_with("0x")
            && *how
                == steps::Wrong {
                    end: StackEnd::UnknownModule,
                    agree: 0,
                    found: 0,
                    ..*how
                })
    });
    for (place, how) in &wrong {
        println!("{place}: {how:?}");
    }
    assert!(steps > 200_000 && instructions > 30_000, "the program did not run");
    assert!(wrong.is_empty());
    println!("child is done");
}

#[test]
fn every_instruction_of_every_python_unwinds_to_its_true_callers() {
    pythons::in_children();
}
