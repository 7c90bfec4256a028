"""What of a Markdown page is code, a link or an anchor."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})[ ]*(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=indent)(?P=mark) *$",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<!\\)(?P<image>!?)\[(?P<label>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:|(?<!\\)\[[^\[\]]+\]\[[^\]]*\]", re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +#+)?$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the reason for which it is not run (``not-run="..."`` beside it), its text."""

    language: str
    reason: str | None
    code: str
    line: int


@dataclass(frozen=True)
class Link:
    """A link or picture, and where it stands in the page's text."""

    target: str
    label: str
    is_image: bool
    start: int
    end: int
    line: int


def blocks(text: str) -> list[Block]:
    r"""The fenced blocks of a page, in order.

    >>> blocks('```sh not-run="a server"\nserve\n```\n')
    [Block(language='sh', reason='a server', code='serve\n', line=1)]
    """
    found = []
    for match in _FENCE.finditer(text):
        language, *marks = shlex.split(match["info"]) or [""]
        named = dict(mark.partition("=")[::2] for mark in marks)
        if named.keys() - {"not-run"}:
            raise ValueError(f'a fence says {match["info"]!r}; only not-run="reason" may follow the language')
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(language, named.get("not-run"), match["code"], line))
    return found


def examples(text: str, *languages: str) -> list[Block]:
    r"""The blocks of some languages that are to be run.

    >>> [one.code for one in examples("```sh not-run='a server'\nserve\n```\n```sh\nls\n```\n", "sh")]
    ['ls\n']
    """
    return [one for one in blocks(text) if one.language in languages and one.reason is None]


def without_marks(text: str) -> str:
    """A page whose fences name the language alone: site generators take other words for options of their own."""
    return _FENCE.sub(lambda match: match[0].replace(match["info"], match["info"].split(" ")[0], 1), text)


def links(text: str) -> list[Link]:
    """Links and pictures outside of code.

    >>> [one.target for one in links("[a](b.md#c), not `[d](e)`, ![f](g.svg)")]
    ['b.md#c', 'g.svg']
    """
    blank = _blank(text)
    return [
        Link(
            match["target"],
            text[match.start("label") : match.end("label")],
            bool(match["image"]),
            match.start(),
            match.end(),
            text.count("\n", 0, match.start()) + 1,
        )
        for match in _LINK.finditer(blank)
    ]


def references(text: str) -> list[str]:
    """Links of the form ``[text][name]``, which nothing here follows."""
    return [match[0] for match in _REFERENCE.finditer(_blank(text))]


def anchors(text: str) -> set[str]:
    r"""What can follow ``#`` in a link to the page; a heading that is there twice is no place to point at.

    >>> sorted(anchors("# A `b`\n## What's new?\n## Again\n## Again\n"))
    ['a-b', 'whats-new']
    """
    slugs = [slug(title) for title in headings(text)]
    return {one for one in slugs if slugs.count(one) == 1}


def headings(text: str) -> Iterator[str]:
    """Titles in order, without the marks that make them headings."""
    for match in _HEADING.finditer(_blank(text, spans=False)):
        yield match[2]


def slug(title: str) -> str:
    """The anchor of a heading, as repository browsers and the site make it.

    >>> slug("The DBAPI, [pandas](p.md) & `sql`")
    'the-dbapi-pandas--sql'
    """
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def _blank(text: str, *, spans: bool = True) -> str:
    """The text with code replaced by blanks of the same length."""
    text = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return _SPAN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text) if spans else text
