"""How the files of a source are read, beyond what their names and bytes say: the options of a source in params.yaml.

It stands in a unit's specification as plain JSON, and there only where an option is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class How:
    """fields: which field is text, messages, url, created, language: a name, a dotted path or a template.

    encoding: label of the encoding that files of the source are in, where they are not UTF-8. records: file, line or
    paragraph: what one record of a text file is.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    records: str = "file"

    @property
    def plain(self) -> dict[str, Any]:
        """The options that are set, as JSON."""
        named = {"fields": dict(self.fields), "encoding": self.encoding, "records": self.records}
        return {name: value for name, value in named.items() if value and value != "file"}

    def claim(self, form: str) -> str:
        """The format that a file of `form` is read as: a text by lines or paragraphs where the source says so."""
        base, dot, codec = form.partition(".")
        return (
            {"line": "lines", "paragraph": "paragraphs"}.get(self.records, base) + dot + codec
            if base == "text"
            else form
        )


def how_of(spec: Mapping[str, Any]) -> How:
    """The options in a unit's specification."""
    return How(**spec.get("how", {}))
