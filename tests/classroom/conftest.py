"""What the classroom's tests share with those of the command line and of the server: a command, and a desk."""

from tests.cli.conftest import tacit_command
from tests.server.conftest import folder, house, open_house

__all__ = ["folder", "house", "open_house", "tacit_command"]
