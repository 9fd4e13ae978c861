//! A server of a test's own: the test's thread ticks it, and the session is real. One at a time, because a session is process-wide.
#![allow(dead_code, reason = "no test binary uses all of it")]

use std::path::Path;
use std::time::{Duration, Instant};

use endstone_spark::activity::ActivityLog;
use endstone_spark::command::{Audience, answer_notice};
use endstone_spark::export::pb;
use endstone_spark::model::{ProfilePlace, WebAddress};
use endstone_spark::session::{
    Control, Destination, Ended, Notice, Refusal, Requester, Service, StartRequest, StopRequest, TickSample,
};
use endstone_spark::settings::Settings;
use endstone_spark::sys::{clock, thread};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;

static ONE_SESSION: Mutex<()> = Mutex::new(());

/// A server of its own: it ticks while it waits for what it is told.
pub struct Server {
    _alone: MutexGuard<'static, ()>,
    pub folder: tempfile::TempDir,
    pub service: Service,
    pub said: Vec<String>,
    /// Longest time that one tick's work for the profiler took.
    pub longest: Duration,
}

impl Server {
    pub fn new(bytebin_url: &str) -> Server {
        Server::in_folder(bytebin_url, tempfile::tempdir().unwrap())
    }

    pub fn in_folder(bytebin_url: &str, folder: tempfile::TempDir) -> Server {
        // The background profiler is not what most of these tests are about.
        let mut server = Server::made(bytebin_url, folder, |settings| settings.background_profiler = false);
        server.tick();
        server
    }

    /// One whose background profiler is on.
    pub fn with_background(bytebin_url: &str) -> Server {
        let mut server = Server::prepared(bytebin_url, |settings| settings.background_profiler = true);
        server.tick();
        server
    }

    /// One that has not ticked yet.
    pub fn prepared(bytebin_url: &str, change: impl FnOnce(&mut Settings)) -> Server {
        Server::made(bytebin_url, tempfile::tempdir().unwrap(), change)
    }

    fn made(bytebin_url: &str, folder: tempfile::TempDir, change: impl FnOnce(&mut Settings)) -> Server {
        let alone = ONE_SESSION.lock();
        let mut settings = Settings {
            bytebin: Some(WebAddress::parse(bytebin_url).unwrap()),
            viewer: WebAddress::parse("http://localhost:9/viewer").unwrap(),
            ..Settings::default()
        };
        change(&mut settings);
        let path = folder.path().join("plugins/spark");
        let past = ActivityLog::empty(path.clone());
        Server {
            _alone: alone,
            folder,
            service: Service::new(path, settings, past),
            said: Vec::new(),
            longest: Duration::ZERO,
        }
    }

    /// One tick: what the plugin does in it, measured, then a short rest.
    pub fn tick(&mut self) -> Vec<Notice> {
        let begin = Instant::now();
        self.service.on_tick(TickSample {
            at: clock::monotonic(),
            tid: thread::current_tid(),
            mspt: 1.0,
        });
        // There is no world; who asks for it is told at once, as the plugin does it.
        if self.service.world().wanted(clock::monotonic()).is_some() {
            self.service.world().deliver(None);
        }
        let notices: Vec<Notice> = self
            .service
            .take_outgoing()
            .into_iter()
            .map(|outgoing| outgoing.notice)
            .collect();
        let _ = self.service.info();
        self.longest = self.longest.max(begin.elapsed());
        self.said.extend(
            notices
                .iter()
                .map(|notice| answer_notice(notice).render(Audience::Console)),
        );
        std::thread::sleep(Duration::from_millis(5));
        notices
    }

    /// Ticks until something is said.
    pub fn until(&mut self, what: impl Fn(&Notice) -> bool) -> Notice {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = self.tick().into_iter().find(|notice| what(notice)) {
                return found;
            }
            assert!(Instant::now() < end, "{:#?}", self.said);
        }
    }

    pub fn try_start(&self) -> Result<(), Refusal> {
        self.service.start(StartRequest::new(1_000, Requester::Console))
    }

    pub fn start(&mut self) {
        self.try_start().unwrap();
        self.until(|notice| matches!(notice, Notice::Started { .. }));
        for _ in 0..10 {
            self.tick();
        }
    }

    pub fn stop(&self, to: Destination) -> Result<Ended, Refusal> {
        self.service.stop(StopRequest {
            to,
            comment: Some("a test".to_owned()),
            requested_by: Requester::Console,
        })
    }

    /// Ticks until the profiler is idle again.
    pub fn settle(&mut self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.service.info().exporting.is_some() || self.service.info().starting {
            self.tick();
            assert!(Instant::now() < end, "{:#?}", self.said);
        }
        self.tick();
    }

    pub fn files(&self) -> Vec<pb::SamplerData> {
        let Ok(folder) = std::fs::read_dir(self.folder.path().join("plugins/spark/profiles")) else {
            return Vec::new();
        };
        folder.map(|file| read(&file.unwrap().path())).collect()
    }

    pub fn places(&self) -> Vec<ProfilePlace> {
        let (_, entries) = self.service.activity();
        entries.into_iter().map(|entry| entry.place).collect()
    }

    pub fn has_said(&self, text: &str) -> bool {
        self.said.iter().any(|line| line.contains(text))
    }
}

pub fn read(path: &Path) -> pb::SamplerData {
    pb::SamplerData::decode(&std::fs::read(path).unwrap()[..]).unwrap()
}
