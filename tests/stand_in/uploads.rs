//! Uploads as an owner sees them: settings in the file, words in the console.

use super::bytebin::{Bytebin, Mode};
use super::{ANSWER, SAVED, beside, lab, start};
use harness::Server;

fn server_with(bytebin: &Bytebin) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let settings = format!(
        "bytebinUrl = \"{}\"\nviewerUrl = \"http://localhost:3000\"\nbackgroundProfiler = false\n",
        bytebin.url
    );
    lab.server(&python)
        .arg("--no-python")
        .file("plugins/spark/config.toml", settings)
        .start_ready()
        .unwrap()
}

#[test]
fn a_profile_is_uploaded_and_found_again_in_the_list() {
    let _beside = beside();
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = server_with(&bytebin);
    start(&mut server, "--comment from the start");
    server.ask("!ticks 5", "!ticks done").unwrap();
    let mark = server.command("spark profiler stop").unwrap();
    let link = server.wait_for_since(mark, "The profile is here", ANSWER).unwrap();
    assert!(
        link.ends_with("The profile is here: http://localhost:3000/abcDEF123"),
        "{link}"
    );
    let said = server.output_since(mark).join("\n");
    for step in ["Stopping the profiler.", "Naming the functions of ", "Uploading "] {
        assert!(said.contains(step), "{said}");
    }
    assert!(server.profile_files().unwrap().is_empty());
    let listed = server.ask("spark activity", "http://localhost:3000/abcDEF123").unwrap();
    assert!(listed.contains("just now by the console, "), "{listed}");
    // The old form, and the new one.
    start(&mut server, "");
    server.ask("spark profiler --upload", "The profile is here").unwrap();
    start(&mut server, "");
    server.ask("spark sampler upload", "The profile is here").unwrap();
    assert_eq!(bytebin.requests().len(), 3);
    server.stop_cleanly().unwrap();
}

#[test]
fn while_an_upload_hangs_the_server_goes_on_and_the_owner_may_have_a_file() {
    let _beside = beside();
    let bytebin = Bytebin::start(Mode::Hang);
    let mut server = server_with(&bytebin);
    start(&mut server, "");
    server.ask("!ticks 5", "!ticks done").unwrap();
    server.ask("spark profiler stop", "Uploading ").unwrap();
    let info = server.ask("spark profiler info", "it is being uploaded").unwrap();
    assert!(
        info.contains("The last profile is not done yet: it is being uploaded, "),
        "{info}"
    );
    let again = server.ask("spark profiler start", "it is being uploaded").unwrap();
    assert!(
        again.ends_with(
            "/spark profiler stop --save-to-file saves it to a file, /spark profiler cancel throws it away."
        ),
        "{again}"
    );
    let mark = server.command("spark profiler stop --save-to-file").unwrap();
    server
        .wait_for_since(
            mark,
            "Breaking the upload off. The profile will be saved to a file.",
            ANSWER,
        )
        .unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    assert_eq!(server.profile_files().unwrap().len(), 1);

    // A server that is stopped does not wait for it.
    start(&mut server, "");
    server.ask("spark profiler stop", "Uploading ").unwrap();
    let output = server.stop_cleanly().unwrap();
    assert!(
        output
            .iter()
            .any(|line| line.contains("the plugin is being disabled. It is saved to a file instead.")),
        "{output:#?}"
    );
    assert_eq!(output.iter().filter(|line| line.contains(SAVED)).count(), 2);
}

#[test]
fn a_failed_upload_is_told_and_saved_and_nothing_is_locked() {
    let _beside = beside();
    for (mode, reason) in [
        (Mode::Status(413), "it is too large for 127.0.0.1"),
        (Mode::WrongCertificate, "is not from an authority that browsers trust"),
    ] {
        let bytebin = Bytebin::start(mode);
        let mut server = server_with(&bytebin);
        start(&mut server, "");
        server.ask("!ticks 5", "!ticks done").unwrap();
        let mark = server.command("spark profiler stop").unwrap();
        let told = server.wait_for_since(mark, "was not uploaded", ANSWER).unwrap();
        assert!(told.contains(reason), "{told}");
        server
            .wait_for_since(mark, "Saved plugins/spark/profiles/", ANSWER)
            .unwrap();
        server.ask("spark activity", "plugins/spark/profiles/").unwrap();
        start(&mut server, "");
        server.ask("spark profiler cancel", "nothing was saved").unwrap();
        server.stop_cleanly().unwrap();
    }
}

#[test]
fn wrong_settings_are_told_in_the_log_and_the_file_is_left_alone() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let own = "# mine\npythonAttribution = \"off\"\nbytebinUrl = \"http://example.org\"\nviewerURL = 1\nbackgroundProfiler = false\n";
    let mut server = lab
        .server(&python)
        .file("plugins/spark/config.toml", own)
        .start_ready()
        .unwrap();
    let said = server.output_since(harness::Mark::start()).join("\n");
    for problem in [
        "plugins/spark/config.toml, line 3: bytebinUrl must be an https address",
        "plugins/spark/config.toml, line 4: there is no setting \"viewerURL\"",
    ] {
        assert!(said.contains(problem), "{said}");
    }
    // What is right holds all the same.
    let running = start(&mut server, "");
    assert!(
        running.contains("native frames only: switched off by pythonAttribution in config.toml."),
        "{running}"
    );
    // A server of the owner's own may have been meant.
    let told = server
        .ask("spark profiler stop", "it is not known which server is meant")
        .unwrap();
    assert!(told.contains("saved to a file instead"), "{told}");
    server.wait_for(SAVED, ANSWER).unwrap();
    let path = server.dir().join("plugins/spark/config.toml");
    assert_eq!(std::fs::read_to_string(path).unwrap(), own);
    server.stop_cleanly().unwrap();
}
