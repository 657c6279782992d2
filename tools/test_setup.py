#!/usr/bin/env python3
"""Tests of setup.py that reach no network and change neither this clone nor the machine."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import setup
import ways
from setup import TABLE
from table import Tool
from ways import Apt, Cargo, Git, InFolder, Pip

MAKEFILE = (ways.ROOT / "Makefile").read_text()


class Scripted(InFolder):
    """Writes a program that says its version, or is interrupted after it."""

    def __init__(self, number: str, interrupted: bool = False) -> None:
        self.number, self.interrupted = number, interrupted

    def version(self) -> str:
        return f"game {self.number}"

    def fill(self, folder: Path, programs: tuple[str, ...]) -> None:
        (folder / "game").write_text(f"#!/bin/sh\necho {self.number}\n")
        (folder / "game").chmod(0o755)
        if self.interrupted:
            raise KeyboardInterrupt


def game(way: ways.Way | None, **more: object) -> Tool:
    return Tool("game", "trying this", way, programs=("game",), **more)


class InScratch(unittest.TestCase):
    """Each test in an empty clone, on a machine that has the programs which it puts into self.bin."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="ranktree-setup-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name).resolve()
        self.bin = self.root / "bin"
        self.bin.mkdir()
        environment = {"PATH": str(self.bin)}
        for changed in (
            mock.patch.multiple(ways, ROOT=self.root, TOOLS=self.root / ".tools"),
            mock.patch.dict(os.environ, environment, clear=True),
        ):
            changed.start()
            self.addCleanup(changed.stop)

    def have(self, program: str, script: str = "exit 0") -> None:
        (self.bin / program).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / program).chmod(0o755)

    def get(self, tool: Tool, may_be_root: bool = False) -> tuple[bool, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return setup.get(tool, may_be_root), said.getvalue()


class Folders(InScratch):
    def test_one_that_was_got_is_there_until_another_version_is_wanted(self) -> None:
        first, second = game(Scripted("1.0")), game(Scripted("2.0"))
        for wanted, other in ((first, second), (second, first)):
            self.assertIsNone(setup.place(wanted))
            self.assertTrue(self.get(wanted)[0])
            place = setup.place(wanted)
            self.assertEqual(place, str(self.root / ".tools/bin/game"))
            self.assertIn(wanted.way.number, Path(place).read_text())
            self.assertIsNone(setup.place(other))
        self.assertEqual(sorted(os.listdir(self.root / ".tools/game")), [".version", "game"])

    def test_one_that_was_interrupted_is_not_there_and_leaves_what_was(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.get(game(Scripted("1.0", interrupted=True)))
        self.assertIsNone(setup.place(game(Scripted("1.0"))))
        self.get(game(Scripted("1.0")))
        with self.assertRaises(KeyboardInterrupt):
            self.get(game(Scripted("2.0", interrupted=True)))
        self.assertIsNotNone(setup.place(game(Scripted("1.0"))))
        # As where the process was killed, and could not tidy up.
        (self.root / ".tools/game.new").mkdir()
        self.assertTrue(self.get(game(Scripted("2.0")))[0])
        self.assertEqual({path.name for path in (self.root / ".tools").iterdir()}, {"bin", "game"})

    def test_the_machines_will_do_where_there_is_none_here(self) -> None:
        tool = game(Scripted("1.0"), look=ways.in_path("play|game"))
        self.assertIsNone(setup.place(tool))
        self.have("game")
        self.assertEqual(setup.place(tool), str(self.bin / "game"))
        for look in (ways.in_path("chess|game", "game"), ways.file("/nowhere/*", f"{self.bin}/ga*")):
            # Each is asked more than once: before and after the tool is got.
            self.assertEqual([look(), look()], [str(self.bin / "game")] * 2)


class Environments(InScratch):
    def setUp(self) -> None:
        super().setUp()
        venv = self.root / ".venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "got").mkdir()
        (venv / "bin/python").symlink_to(sys.executable)
        (venv / "bin/game").symlink_to(sys.executable)
        (venv / "got/game").write_text("game==1.0")
        self.venv = venv

    def test_a_record_of_the_same_version_is_believed(self) -> None:
        self.assertEqual(setup.place(game(Pip("game==1.0"))), str(self.venv / "bin/game"))
        self.assertIsNone(setup.place(game(Pip("game==1.1"))))

    def test_nothing_in_it_is_there_after_an_interruption(self) -> None:
        (self.venv / "unfinished").touch()
        self.assertIsNone(setup.place(game(Pip("game==1.0"))))

    def test_one_that_may_not_be_written_is_named(self) -> None:
        with mock.patch.object(Path, "mkdir", side_effect=PermissionError(13, "Permission denied", "/x")):
            done, said = self.get(game(Scripted("1.0")))
        self.assertFalse(done)
        self.assertIn("game is missing (trying this): [Errno 13] Permission denied: '/x'. To try again", said)

    def test_nothing_in_it_is_there_without_its_python(self) -> None:
        (self.venv / "bin/python").unlink()
        (self.venv / "bin/python").symlink_to("/nowhere/python3")
        self.assertIsNone(setup.place(game(Pip("game==1.0"))))

    def test_what_pip_cannot_reach_takes_nothing_away(self) -> None:
        (self.venv / "bin/python").unlink()
        (self.venv / "bin/python").write_text("#!/bin/sh\nexit 1\n")
        (self.venv / "bin/python").chmod(0o755)
        done, said = self.get(game(Pip("game==1.1")))
        self.assertFalse(done)
        self.assertIn("pip ended with 1, and says why above. To try again: make setup FOR=game", said)
        self.assertIsNotNone(setup.place(game(Pip("game==1.0"))))


class Root(InScratch):
    """apt-get and sudo are scripts that write down how they are called."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.root / "log"
        self.have("apt-get", f'echo "apt-get $*" >> {self.log}')
        self.have("env", 'shift; exec "$@"')
        self.have("sudo", f'echo "sudo $1" >> {self.log}; exec "$@"')
        user = mock.patch.object(os, "geteuid", lambda: 1000)
        user.start()
        self.addCleanup(user.stop)
        by_hand = {"apt-get": "As root: apt-get x"}
        self.tool = game(Apt("game-dev"), look=ways.file(str(self.log)), by_hand=by_hand)
        ways.newest_lists.cache_clear()

    def test_only_make_setup_becomes_root_and_it_says_so(self) -> None:
        done, said = self.get(self.tool)
        self.assertFalse(done or self.log.exists())
        self.assertEqual(said, "game is missing (trying this). Run: make setup FOR=game\n")
        done, said = self.get(self.tool, may_be_root=True)
        self.assertTrue(done)
        self.assertEqual(said, "game: installing game-dev: sudo apt-get install game-dev\n")
        self.assertEqual(self.log.read_text().count("sudo"), 2)

    def test_without_sudo_a_person_has_to(self) -> None:
        (self.bin / "sudo").unlink()
        for may_be_root in (False, True):
            done, said = self.get(self.tool, may_be_root)
            self.assertFalse(done or self.log.exists())
            self.assertTrue(said.endswith(". As root: apt-get x\n"), said)

    def test_another_machine_says_how_its_own_installs_it(self) -> None:
        (self.bin / "apt-get").unlink()
        tool = game(Apt("game-dev"), by_hand={"pacman": "As root: pacman -S game", "": "Ask"})
        self.assertEqual(setup.next_step(tool), "Ask")
        self.have("pacman")
        self.assertEqual(setup.next_step(tool), "As root: pacman -S game")


class Choice(InScratch):
    def names(self, *asked: str) -> list[str]:
        return [tool.name for tool in setup.chosen(list(asked))]

    def test_groups_and_names_are_each_there_once(self) -> None:
        self.assertEqual(self.names("build"), ["cargo", "c++", "libclang"])
        self.assertEqual(self.names("libclang", "valkey", "build"), ["cargo", "c++", "libclang", "valkey"])
        with self.assertRaisesRegex(SystemExit, "there is no tool walkey"):
            self.names("walkey")

    def test_the_browser_is_for_ci_unless_that_lacks_it(self) -> None:
        self.assertNotIn("browser", self.names("test"))
        os.environ["CI"] = "true"
        self.assertIn("browser", self.names("test"))
        os.environ["TESTS_WITHOUT"] = "mono chromium"
        self.assertNotIn("browser", self.names("test"))
        self.assertIn("browser", self.names("browser"))

    def test_nothing_is_left_out_in_ci_unless_it_is_named(self) -> None:
        for ci, without, optional, expect in (
            ("", "", True, True),
            ("", "", False, False),
            ("true", "", True, False),
            ("true", "game", True, True),
            ("true", "gamer", True, False),
        ):
            os.environ.update(CI=ci, TESTS_WITHOUT=without)
            done, said = self.get(game(None, optional=optional, by_hand={"": "Buy it"}))
            self.assertEqual((done, "that is left out" in said), (expect, expect), (ci, without, optional))
            self.assertTrue(said.endswith(". Buy it\n"), said)


class Table(unittest.TestCase):
    def test_the_makefile_has_a_target_for_each_that_can_be_got(self) -> None:
        targets = re.findall(r"^GOT := (.*)", MAKEFILE, re.M)[0].split() + ["libclang", "browser"]
        self.assertEqual(set(targets), {tool.name for tool in TABLE if tool.way} - {"venv"})

    def test_every_version_is_fixed(self) -> None:
        for tool in TABLE:
            if isinstance(tool.way, Pip):
                for requirement in tool.way.requirements:
                    self.assertRegex(requirement, r"^[\w-]+==\d[\d.]*$")
            elif isinstance(tool.way, Cargo):
                self.assertRegex(tool.way.number, r"^\d+\.\d+\.\d+$")
            elif isinstance(tool.way, Git):
                self.assertRegex(tool.way.commit, r"^[0-9a-f]{40}$")

    def test_each_says_what_to_do_where_it_cannot_be_got(self) -> None:
        self.assertEqual(len({tool.name for tool in TABLE}), len(TABLE))
        for tool in TABLE:
            if tool.way is None or tool.way.needs_root:
                self.assertIn("", tool.by_hand, tool.name)


if __name__ == "__main__":
    unittest.main()
