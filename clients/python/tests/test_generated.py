from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent


def test_generated_files_are_current() -> None:
    check = [sys.executable, "-B", str(FOLDER / "generate.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_stale_file_is_noticed(tmp_path: Path) -> None:
    package = tmp_path / "clients" / "python"
    sources = [f"src/ranktree/{name}.py" for name in ("types", "_client", "_async_client")]
    for name in ("generate.py", *sources):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text((FOLDER / name).read_text(encoding="utf-8"), encoding="utf-8")
    document = (FOLDER.parent.parent / "docs" / "openapi.json").read_text(encoding="utf-8")
    (tmp_path / "docs").mkdir()
    check = [sys.executable, "-B", str(package / "generate.py"), "--check"]
    for text, code in ((document, 0), (document.replace('"group_rank"', '"friend_rank"'), 1)):
        (tmp_path / "docs" / "openapi.json").write_text(text, encoding="utf-8")
        done = subprocess.run(check, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    assert "src/ranktree/types.py is not current" in done.stderr


def test_types_are_right() -> None:
    """The examples and these tests, too."""
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
