"""An answer's rows, made when they are looked at: a hundred thousand dicts take longer to make than to be counted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

Row = Mapping[str, Any]


class Rows(Sequence[Row]):
    """Columns of one length, read as a sequence of dicts.

    >>> Rows({"ward": ["A", "B"], "n": [3, 4]})[1]
    {'ward': 'B', 'n': 4}
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._names = tuple(columns)
        self._columns = tuple(columns.values())

    def column(self, name: str) -> Sequence[Any]:
        """Return one column whole, without making rows."""
        return self._columns[self._names.index(name)]

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return {name: column[place] for name, column in zip(self._names, self._columns, strict=True)}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for cells in zip(*self._columns, strict=True):
            yield dict(zip(self._names, cells, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
