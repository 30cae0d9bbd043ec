"""The state: the sum of all entries (totals, tables, budgets), as one map with a signed root.

Without it, anyone who can write the tables could lower a total or restore an old one without the key. The map is a tree
of hashes (a Merkle tree): a name's hash is its place in the tree, few names share a bucket, and every piece that is
read is checked against the hash in its parent, up to the root. So a lookup reads one path and a change writes one, for
a map of any size, and absence is proved too. Names are never removed. How it is stored is left to `store.py`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from tacit.ledger.chain import canonical
from tacit.ledger.entry import Entry
from tacit.ledger.store import NotAsSigned, StoreRows

# The most names that share a bucket; with one more it becomes sixteen.
BUCKET_MAX = 16
PLACE_DIGITS = 32
# How many pieces a process keeps at hand.
PIECES_MAX = 4096
_CHILD = 65

Children = dict[str, str]
Values = dict[str, str]


@dataclass
class Pieces:
    """Pieces this process has checked or made, each with its hash: right wherever that hash is asked for."""

    nodes: dict[str, tuple[str, Children]] = field(default_factory=dict)
    buckets: dict[str, tuple[str, Values]] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def keep(
        self,
        nodes: Mapping[str, tuple[str, Children]] = MappingProxyType({}),
        buckets: Mapping[str, tuple[str, Values]] = MappingProxyType({}),
        entries: Mapping[str, Entry] = MappingProxyType({}),
    ) -> None:
        """Keep more pieces; too many are all let go."""
        if len(self.nodes) + len(self.buckets) + len(self.entries) > PIECES_MAX:
            self.nodes, self.buckets, self.entries = {}, {}, {}
        self.nodes.update(nodes)
        self.buckets.update(buckets)
        self.entries.update(entries)


@dataclass(frozen=True)
class Change:
    """The changes of a transaction in the map: its new root, and the rows to write."""

    root: str
    values: list[tuple[str, str, str]]
    nodes: list[tuple[str, str]]


class State:
    """The map as of a root, and the changes of one transaction."""

    def __init__(self, rows: StoreRows, root: str, pieces: Pieces) -> None:
        self._rows = rows
        self._root = root
        self._pieces = pieces
        self._put: Values = {}

    def get(self, name: str) -> str | None:
        found = self._put.get(name)
        if found is not None:
            return found
        at, hash, place = "", self._root, place_of(name)
        while True:
            piece = self._piece(at, hash)
            if not piece.is_node:
                return piece.content.get(name)
            at = place[: len(at) + 1]
            child = piece.content.get(at[-1])
            if child is None:
                return None
            hash = child

    def put(self, name: str, value: str) -> None:
        self._put[name] = value

    def change(self) -> Change:
        """Return the rows to write; only the new root can ask for the new pieces."""
        if not self._put:
            return Change(self._root, [], [])
        grown = _Grown()
        root = self._grow(grown, "", self._root, self._put)
        self._pieces.keep(grown.nodes, grown.buckets)
        values = [(name, place_of(name), value) for name, value in self._put.items()]
        return Change(root, values, [(at, _node_text(children)) for at, (_, children) in grown.nodes.items()])

    def _grow(self, grown: "_Grown", at: str, hash: str | None, put: Values) -> str:
        piece = _NONE if hash is None else self._piece(at, hash)
        if not piece.is_node:
            return grown.build(at, {**piece.content, **put})
        children = dict(piece.content)
        for digit, values in _by_digit(at, put).items():
            children[digit] = self._grow(grown, at + digit, children.get(digit), values)
        return grown.node(at, children)

    def _piece(self, at: str, hash: str) -> "StatePiece":
        """Return the node or bucket at a place, from memory or from the store, if it has the hash it must have."""
        node, bucket = self._pieces.nodes.get(at), self._pieces.buckets.get(at)
        if node is not None and node[0] == hash:
            return StatePiece(True, node[1])
        if bucket is not None and bucket[0] == hash:
            return StatePiece(False, bucket[1])
        text = self._rows.node(at)
        if text is not None:
            if node_hash(at, text) != hash:
                raise NotAsSigned
            children = children_of(text)
            self._pieces.keep(nodes={at: (hash, children)})
            return StatePiece(True, children)
        values = dict(self._rows.bucket(at))
        if bucket_hash(at, values) != hash:
            raise NotAsSigned
        self._pieces.keep(buckets={at: (hash, values)})
        return StatePiece(False, values)


@dataclass(frozen=True)
class StatePiece:
    """A node with its children's hashes by digit, or a bucket with values by name."""

    is_node: bool
    content: dict[str, str]


_NONE = StatePiece(False, {})


class _Grown:
    """Pieces as they are made, from the leaves up."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, Children]] = {}
        self.buckets: dict[str, tuple[str, Values]] = {}

    def build(self, at: str, values: Values) -> str:
        """Make all that is at a place and below it, and return its hash."""
        if len(values) <= BUCKET_MAX or len(at) == PLACE_DIGITS:
            hash = bucket_hash(at, values)
            self.buckets[at] = (hash, values)
            return hash
        return self.node(at, {digit: self.build(at + digit, some) for digit, some in _by_digit(at, values).items()})

    def node(self, at: str, children: Children) -> str:
        hash = node_hash(at, _node_text(children))
        self.nodes[at] = (hash, children)
        return hash


def whole_state(values: Values) -> tuple[str, dict[str, str]]:
    """Return the root of a map and the text of each of its nodes, computed only from its values."""
    grown = _Grown()
    root = grown.build("", values)
    return root, {at: _node_text(children) for at, (_, children) in grown.nodes.items()}


@lru_cache(maxsize=8192)
def place_of(name: str) -> str:
    """Return where in the tree a name is: the first digits of its hash."""
    return hashlib.sha256(name.encode()).hexdigest()[:PLACE_DIGITS]


def node_hash(at: str, text: str) -> str:
    """Return the hash of a node: its place, and the digit and hash of every child."""
    return hashlib.sha256(f"node {at}\n{text}".encode()).hexdigest()


def bucket_hash(at: str, values: Values) -> str:
    return hashlib.sha256(f"bucket {at}\n{canonical(values)}".encode()).hexdigest()


def children_of(text: str) -> Children:
    """Return the hashes that a node's text names, by digit."""
    return {text[start]: text[start + 1 : start + _CHILD] for start in range(0, len(text), _CHILD)}


def _node_text(children: Children) -> str:
    return "".join(digit + children[digit] for digit in sorted(children))


def _by_digit(at: str, values: Values) -> dict[str, Values]:
    parts: dict[str, Values] = {}
    for name, value in values.items():
        parts.setdefault(place_of(name)[len(at)], {})[name] = value
    return parts
