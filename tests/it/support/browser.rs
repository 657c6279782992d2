//! A browser without a window: Chromium, driven over its own protocol (CDP) through two pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::tools::missing;

/// Far above what a page takes.
const WITHIN: Duration = Duration::from_secs(120);
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Hands the pipes over as the descriptors that Chromium takes them by.
const START: &str = r#"exec "$0" "$@" 3<"$TO" 4>"$FROM""#;

pub struct Browser {
    process: Child,
    to: File,
    from: BufReader<File>,
    sent: u64,
    session: Option<String>,
    /// What the page has complained of.
    complaints: Vec<String>,
    _folder: TempDir,
}

/// Where Chromium is, if it is on this machine.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

impl Browser {
    /// `None`, and a line that says so, where there is no browser; see [`missing`].
    pub fn start() -> Option<Self> {
        let Some(program) = program() else {
            missing("chromium", "`make browser` installs it");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary directory");
        let [to, from] = ["to", "from"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args([&to, &from]).status().expect("coreutils are installed");
        assert!(made.success());
        let mut command = Command::new("sh");
        command.args(["-c", START]).arg(program).env("TO", &to).env("FROM", &from);
        command.args(["--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--remote-debugging-pipe",
        ]);
        if rustix::process::geteuid().is_root() {
            // Chromium refuses to run as root otherwise, as tests in containers do.
            command.args(["--no-sandbox", "--disable-dev-shm-usage"]);
        }
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.arg("about:blank").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("a shell can be started");
        // In the order in which the shell opens its ends.
        let to = OpenOptions::new().write(true).open(to).expect("the shell reads");
        let from = BufReader::new(File::open(from).expect("the shell writes"));
        let (session, complaints) = (None, Vec::new());
        let mut browser = Self { process, to, from, sent: 0, session, complaints, _folder: folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// # Errors
    /// What the browser says, which is that there is no page while it loads another one.
    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method});
        message["params"] = parameters;
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut bytes = Vec::new();
            let read = self.from.read_until(0, &mut bytes).expect("the browser runs");
            assert_ne!(read, 0, "the browser has ended");
            bytes.pop();
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == self.sent {
                return if answer["error"].is_null() { Ok(answer["result"].take()) } else { Err(answer) };
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(parameters["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            _ => {}
        }
    }

    /// What the page has complained of since the last time: exceptions, and what its policy forbids.
    pub fn complaints(&mut self) -> Vec<String> {
        self.eval("1");
        std::mem::take(&mut self.complaints)
    }

    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
    }

    /// The value of an expression, or what it comes to.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true. Whatever it needs may not be there yet.
    pub fn wait(&mut self, expression: &str) {
        let begun = Instant::now();
        let asked = json!({"expression": format!("!!({expression})"), "returnByValue": true});
        loop {
            let answer = self.try_call("Runtime.evaluate", asked.clone()).unwrap_or_default();
            if answer["result"]["value"] == true {
                return;
            }
            if begun.elapsed() > WITHIN {
                let text = self.eval("document.body.innerText");
                panic!("it does not come: {expression}\n{}", text.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the page shows a text.
    pub fn wait_for(&mut self, text: &str) {
        self.wait(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Clicks on the first element of this kind with this text.
    pub fn click(&mut self, kind: &str, text: &str) {
        let found = format!(
            "[...document.querySelectorAll({})].find((element) => element.textContent.trim() === {})",
            json!(kind),
            json!(text)
        );
        self.wait(&found);
        self.eval(&format!("{found}.click()"));
    }

    pub fn press_tab(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let key = json!({"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    pub fn resize(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", scheme);
    }

    /// Saves a picture of the whole page, in PNG as base64 has it.
    pub fn picture(&mut self, file: &Path) {
        let asked = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", asked);
        let text = picture["data"].as_str().expect("a picture");
        let decode = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(file).expect("it can be written"))
            .spawn();
        let mut decode = decode.expect("coreutils are installed");
        decode.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
        assert!(decode.wait().expect("it ends").success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
