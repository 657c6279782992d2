"""Chromium without a window, driven over its own protocol (CDP) through two pipes, as tests/it/support/browser.rs does."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--remote-debugging-pipe", "--force-color-profile=srgb",
)
WITHIN = 60


class Browser:
    def __enter__(self):
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        if program is None:
            raise SystemExit("There is no Chromium here; `make browser` installs it")
        self.folder = tempfile.TemporaryDirectory(prefix="ranktree-browser-", ignore_cleanup_errors=True)
        theirs, self.to = os.pipe()
        self.came, mine = os.pipe()
        # Chromium refuses to run as root otherwise, as in containers.
        root = ["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []
        # Chromium takes the pipes as its descriptors 3 and 4.
        started = ["sh", "-c", f'exec "$0" "$@" 3<&{theirs} 4>&{mine}', program, *FLAGS, *root]
        self.process = subprocess.Popen(
            [*started, f"--user-data-dir={self.folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(theirs, mine),
        )
        os.close(theirs), os.close(mine)
        self.sent, self.session, self.rest = 0, None, b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to), os.close(self.came)
        self.folder.cleanup()

    def call(self, method, **parameters):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                came = os.read(self.came, 1 << 16)
                if not came:
                    raise SystemExit("Chromium has ended")
                self.rest += came
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def size(self, width, height, scale, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url, expression):
        """Opens a page, and waits until the expression is true."""
        # A page that differs in its fragment alone is not loaded again.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait(expression)

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression):
        begun = time.monotonic()
        while True:
            try:
                if self.evaluate(f"!!({expression})"):
                    return
            except RuntimeError:
                pass  # There is no page while another one is loaded.
            if time.monotonic() - begun > WITHIN:
                raise SystemExit(f"It does not come: {expression}\n{self.evaluate('document.body.innerText')}")
            time.sleep(0.05)

    def picture(self):
        """PNG of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
