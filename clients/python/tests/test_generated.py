from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
ROOT = FOLDER.parent.parent


def test_generated_files_are_current() -> None:
    check = [sys.executable, "-B", str(ROOT / "clients" / "generator" / "generate.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_stale_file_is_noticed(tmp_path: Path) -> None:
    skipped = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "target")
    shutil.copytree(ROOT / "clients", tmp_path / "clients", ignore=skipped)
    document = (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")
    (tmp_path / "docs").mkdir()
    check = [sys.executable, "-B", str(tmp_path / "clients" / "generator" / "generate.py"), "--check"]
    for text, code in ((document, 0), (document.replace('"group_rank"', '"friend_rank"'), 1)):
        (tmp_path / "docs" / "openapi.json").write_text(text, encoding="utf-8")
        done = subprocess.run(check, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert "src/ranktree/types.py is not current" in done.stderr


def test_types_are_right() -> None:
    """The examples and these tests, too."""
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
