r"""Regular expressions that mean the same to Java, whose engine Spark has, and to RE2, which DuckDB has.

What differs is refused (look-around, back-references, possessive quantifiers, ``\b``, classes of Unicode, sets in
sets) or written for RE2 as Java means it: ``.`` stops at line breaks, ``\s`` is six blanks, ``(?i)`` is about ASCII.
Java tries again and again where a pattern can match in many ways, so quantifiers are few and never one in the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakehouse.errors import InvalidStatement

MOST_CHARACTERS = 1_000
_MOST_TIMES = 1_000
_MOST_WAYS = 4_096
_MOST_UNBOUNDED = 4
_BREAKS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": r"\t-\r "}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPECIAL = frozenset(".^$|()[]{}*+?\\")
_FLAGS = re.compile(r"\(\?(i|s|is|si)\)")
_TIMES = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as RE2 is given it, how many groups it has, and whether it can match where there is nothing."""

    re2: str
    groups: int
    is_nullable: bool


@dataclass(slots=True)
class _Part:
    """A part of a pattern that a quantifier can stand after."""

    text: str
    is_nullable: bool = False
    is_choice: bool = False
    is_quantified: bool = False
    is_place: bool = False


def read_pattern(text: str) -> Pattern:
    r"""A pattern, checked. Raises `InvalidInput` for what the engines differ in, or what could take without end.

    >>> read_pattern(r"^https?://(?:www\.)?([^/]+)/.*$").groups
    1
    >>> read_pattern("(a+)+")
    Traceback (most recent call last):
    lakehouse.errors.InvalidStatement: a quantifier stands around another one or around a choice; ...
    """
    if len(text) > MOST_CHARACTERS:
        raise InvalidStatement("the pattern is too long", characters=len(text), most=MOST_CHARACTERS)
    reader = _Reader(text)
    if found := _FLAGS.match(text):
        reader.place = found.end()
        reader.flags = found[1]
    whole = reader.choice(0)
    if reader.place < len(text):
        raise _refused(text, "a parenthesis too many")
    return Pattern(f"(?s){whole.text}", reader.groups, whole.is_nullable)


def read_replacement(text: str, groups: int) -> str:
    r"""What Java puts in place of a match, as RE2 says it: ``$1`` is a group, and ``\$`` a dollar.

    >>> read_replacement("$1 costs \\$5", 1)
    '\\1 costs $5'
    """
    written, place = "", 0
    while place < len(text):
        letter, after = text[place], text[place + 1 : place + 2]
        if letter == "\\":
            if after not in ("\\", "$"):
                raise InvalidStatement(
                    r"in a replacement a group is $1, not \1, and a backslash stands before $ or itself",
                    found=text[:100],
                )
            written += "\\\\" if after == "\\" else after
        elif letter == "$":
            if not (after.isascii() and after.isdigit()) or int(after) > groups:
                raise InvalidStatement("in a replacement $1 is the first group in parentheses", found=text[:100])
            if text[place + 2 : place + 3].isdigit():
                raise InvalidStatement(
                    "a replacement can name nine groups, and no digit stands behind", found=text[:100]
                )
            written += "\\" + after
        else:
            written += letter
            place += 1
            continue
        place += 2
    return written


def _refused(text: str, what: str) -> InvalidStatement:
    return InvalidStatement(f"the pattern cannot be taken: {what}", pattern=text[:200])


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right, and writes it for RE2."""

    text: str
    place: int = 0
    flags: str = ""
    groups: int = 0
    ways: int = 1
    """In how many ways choices and quantifiers can be combined, those without end left out."""
    unbounded: int = 0

    def _next(self) -> str:
        return self.text[self.place : self.place + 1]

    def choice(self, depth: int) -> _Part:
        """Alternatives, up to a closing parenthesis or the end."""
        if depth > 20:
            raise _refused(self.text, "parentheses are nested too deeply")
        found = [self._sequence(depth)]
        while self._next() == "|":
            self.place += 1
            found.append(self._sequence(depth))
        self._count(len(found) if depth else 1)
        return _Part(
            "|".join(one.text for one in found),
            any(one.is_nullable for one in found),
            len(found) > 1 or found[0].is_choice,
            any(one.is_quantified for one in found),
        )

    def _count(self, ways: int) -> None:
        """Java may try every combination of choices before it says that there is no match."""
        self.ways *= ways
        if self.ways > _MOST_WAYS:
            raise _refused(self.text, "too many choices and ? in one pattern")

    def _sequence(self, depth: int) -> _Part:
        parts = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._quantified(self._part(depth)))
        return _Part(
            "".join(one.text for one in parts),
            all(one.is_nullable for one in parts),
            any(one.is_choice for one in parts),
            any(one.is_quantified for one in parts),
        )

    def _part(self, depth: int) -> _Part:
        letter = self._next()
        self.place += 1
        match letter:
            case "(":
                return self._group(depth)
            case "[":
                return _Part(self._set())
            case ".":
                return _Part("." if "s" in self.flags else f"[^{_BREAKS}]")
            case "^":
                return _Part(r"\A", is_nullable=True, is_place=True)
            case "$":
                return _Part(r"\z", is_nullable=True, is_place=True)
            case "\\":
                return self._escaped()
            case _ if letter in _SPECIAL:
                raise _refused(self.text, f"write \\{letter} for the character {letter}")
        return _Part(self._literal(letter))

    def _group(self, depth: int) -> _Part:
        opening = "("
        if self._next() == "?":
            if self.text[self.place : self.place + 2] != "?:":
                raise _refused(self.text, "of (?...), only (?:...) and (?i) or (?s) at the beginning are read")
            self.place += 2
            opening = "(?:"
        else:
            self.groups += 1
        inner = self.choice(depth + 1)
        if self._next() != ")":
            raise _refused(self.text, "a parenthesis is not closed")
        self.place += 1
        return _Part(f"{opening}{inner.text})", inner.is_nullable, inner.is_choice, inner.is_quantified)

    def _quantified(self, part: _Part) -> _Part:
        least, most, text = self._times()
        if not text:
            return part
        if part.is_place:
            raise _refused(self.text, "a quantifier stands after ^ or $")
        repeats = most is None or most > 1
        if repeats and (part.is_quantified or part.is_choice or part.is_nullable):
            raise InvalidStatement(
                "a quantifier stands around another one or around a choice; write the pattern without",
                pattern=self.text[:200],
            )
        if self._next() == "?":
            self.place += 1
            text += "?"
        if self._next() in ("?", "*", "+", "{") and self._next():
            raise _refused(self.text, "a quantifier stands after another one")
        self.unbounded += most is None or most - least > 1
        if self.unbounded > _MOST_UNBOUNDED:
            raise _refused(self.text, f"more than {_MOST_UNBOUNDED} of *, + and the like")
        self._count(1 + (most != least))
        return _Part(part.text + text, part.is_nullable or least == 0, part.is_choice, is_quantified=True)

    def _times(self) -> tuple[int, int | None, str]:
        """How often at least and at most (None: any number), and the text that says so; no text where nothing does."""
        letter = self._next()
        if letter in ("*", "+", "?") and letter:
            self.place += 1
            return {"*": (0, None, "*"), "+": (1, None, "+"), "?": (0, 1, "?")}[letter]
        if letter != "{":
            return 1, 1, ""
        found = _TIMES.match(self.text, self.place)
        if found is None:
            raise _refused(self.text, r"write \{ for a brace, and {2}, {2,} or {2,5} for times")
        self.place = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if least > _MOST_TIMES or (most is not None and not max(1, least) <= most <= _MOST_TIMES):
            raise _refused(self.text, f"times go from 1 to {_MOST_TIMES}")
        return least, most, found[0]

    def _escaped(self) -> _Part:
        letter = self._next()
        self.place += 1
        if letter.lower() in _CLASSES and letter:
            return _Part(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]")
        return _Part(self._literal(self._character(letter)))

    def _character(self, letter: str) -> str:
        """The character that stands for itself, or for a control, after a backslash."""
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if not letter or letter.isalnum() or not letter.isascii() or letter == "_":
            raise _refused(self.text, f"\\{letter} does not mean the same to both engines")
        return letter

    def _literal(self, letter: str) -> str:
        cases = {letter.lower(), letter.upper()} if "i" in self.flags and letter.isascii() else {letter}
        written = "".join(_plain(one) for one in sorted(cases))
        return f"[{written}]" if len(cases) > 1 else written

    def _set(self) -> str:
        """A set in brackets, without its opening one."""
        negative = self._next() == "^"
        self.place += negative
        items: list[str] = []
        while (letter := self._next()) != "]":
            after = self.text[self.place + 1 : self.place + 2]
            if letter in ("", "[", "^") or (letter == after == "&") or (letter == "-" and items and after != "]"):
                raise _refused(self.text, r"in brackets \[, \], \^, \- and \& are written with a backslash")
            items.append(self._item())
        if not items:
            raise _refused(self.text, "an empty set in brackets")
        self.place += 1
        return f"[{'^' if negative else ''}{''.join(items)}]"

    def _item(self) -> str:
        first = self._member()
        if len(first) > 1:
            return _CLASSES[first[1]]
        after = self.text[self.place + 1 : self.place + 2]
        if self._next() != "-" or after in ("]", ""):
            return self._range(first, first)
        self.place += 1
        last = self._member()
        if len(last) > 1 or last < first:
            raise _refused(self.text, "a range in brackets goes from one character to a later one")
        return self._range(first, last)

    def _member(self) -> str:
        """A character of a set, or a class of characters with its backslash."""
        letter = self._next()
        self.place += 1
        if letter != "\\":
            return letter
        letter = self._next()
        self.place += 1
        return "\\" + letter if letter in _CLASSES and letter else self._character(letter)

    def _range(self, first: str, last: str) -> str:
        found = [(first, last)]
        if "i" in self.flags:
            for low, high, step in (("A", "Z", 32), ("a", "z", -32)):
                start, end = max(first, low), min(last, high)
                if start <= end:
                    found.append((chr(ord(start) + step), chr(ord(end) + step)))
        return "".join(_plain(one) if one == other else f"{_plain(one)}-{_plain(other)}" for one, other in found)


def _plain(letter: str) -> str:
    """A character as RE2 reads it for itself."""
    return letter if letter.isalnum() or ord(letter) > 127 else f"\\x{{{ord(letter):x}}}"
