"""Small files that others wrote are read whole, and never more than they may hold."""

import os
import threading

import pytest

from tacit.catalog_file import BYTES_MAX
from tacit.cli.app import main
from tacit.errors import InvalidParameter
from tacit.files import read_small


def test_a_file_and_a_pipe_are_read(tmp_path):
    (tmp_path / "a").write_bytes("ä\r\nb".encode())
    assert read_small(tmp_path / "a", bytes_max=10) == "ä\nb"
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("x",))
    writer.start()
    assert read_small(tmp_path / "pipe", bytes_max=10) == "x"
    writer.join()


def test_what_is_larger_than_it_may_be_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 11)
    with pytest.raises(InvalidParameter, match="larger than"):
        read_small(tmp_path / "a", bytes_max=10)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
@pytest.mark.parametrize(
    "words",
    [
        ("tables", "--catalog"),
        ("ask", "t", "SELECT COUNT(*) FROM t", "--epsilon", "1", "--catalog"),
        ("certificate", "verify"),
        ("local", "choose", "--epsilon", "1", "--domain"),
        ("init", "t.csv", "--no-ask", "--output"),
    ],
)
def test_a_device_that_never_ends_is_no_file(words, device, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id\n1\n")
    with pytest.raises(SystemExit) as stopped:
        main([*words, device])
    assert stopped.value.code == 2
    assert "device" in capsys.readouterr().err


def test_a_catalog_has_a_largest_size(tmp_path, capsys):
    (tmp_path / "big.toml").write_bytes(b"#" * (BYTES_MAX + 1))
    with pytest.raises(SystemExit):
        main(["tables", "--catalog", str(tmp_path / "big.toml")])
    assert "larger than 4 MB" in capsys.readouterr().err
