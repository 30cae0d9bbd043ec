"""What the registry shows: README.md with links that open there, and the project's addresses.

A publisher gives the repository's address as TACIT_URL, and one to write to as TACIT_EMAIL. Without the first, links to
files of the repository become plain words: a dead link, or an address that nobody gave, would be worse than none.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")
AUTHOR = "The Tacit developers"
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def readme(text: str, at: str, version: str) -> str:
    """Return a page whose links to files are absolute, or plain words if there is no address."""
    text = COMMENT.sub("", text)
    return LINK.sub(rf"[\1]({at}/blob/v{version}/\2)" if at else r"\1", text)


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        at = os.environ.get("TACIT_URL", "").rstrip("/")
        root = Path(self.root)
        found = re.search(r'^__version__ = "([^"]+)"', (root / "src/tacit/__init__.py").read_text(), re.MULTILINE)
        if found is None:
            raise ValueError("src/tacit/__init__.py states no version")
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, at, found[1])}
        if email := os.environ.get("TACIT_EMAIL"):
            metadata["authors"] = [{"name": AUTHOR, "email": email}]
        else:
            metadata["authors"] = [{"name": AUTHOR}]
        if at:
            changes = f"{at}/blob/v{found[1]}/CHANGELOG.md"
            metadata["urls"] = {"Source": at, "Issues": f"{at}/issues", "Changelog": changes}
