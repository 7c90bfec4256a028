"""What Spark means, in DuckDB's words, where the type of an argument decides, which DuckDB alone knows.

Each meaning is a text over its arguments, ``$1`` and so on. Short ones are put in as they are, and `typeof` of
them is settled before any row is read; a longer one is calculated once and handed on in a list of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

PREFIX = "lake_meaning_"
NO_TEXT = "no_text"
"""What is true in the ``meta`` of a conversion whose operand is known to be no text."""
_BLANK = "chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || ' '"
_TEXT = f"trim(CAST($1 AS VARCHAR), {_BLANK})"
_FOLDED = f"lower({_TEXT})"
_PLAIN = "CAST(TRY_CAST(CAST($1 AS VARCHAR) AS BIGINT) AS VARCHAR) = CAST($1 AS VARCHAR)"
"""Text of digits as they are written anew: most texts that are numbers, recognised at a quarter of the cost."""
_NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]{1,6})?)?"
_ZONE = "(Z|[+-][0-9]{2}:[0-9]{2})"
_WHOLE = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT})
_TIMES = frozenset({exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ})
_FLOATING = "('DOUBLE', 'FLOAT')"
_INTEGERS = "('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', '\"NULL\"')"
_START = "(CASE WHEN $2 > 0 THEN $2 - 1 WHEN $2 < 0 THEN length($1) + $2 ELSE 0 END)"
_OCTETS = "CASE WHEN typeof($1) = 'BLOB' THEN octet_length(TRY_CAST($1 AS BLOB)) ELSE strlen(CAST($1 AS VARCHAR)) END"
_PADDED = "CASE WHEN $3 = '' THEN left($1, greatest($2, 0)) ELSE {}($1, $2, CASE WHEN $3 = '' THEN ' ' ELSE $3 END) END"
"""DuckDB pads with nothing at all by an error."""
_BYTES = (
    "CASE typeof($1) WHEN 'BLOB' THEN TRY_CAST($1 AS BLOB) WHEN 'VARCHAR' THEN encode(CAST($1 AS VARCHAR)) "
    "WHEN '\"NULL\"' THEN NULL ELSE error('this function takes text or bytes') END"
)
_ONLY = "error('{}; use engine=\"spark\"')"
_LINES = "translate($1, chr(13) || chr(10), '')"
_MAGNITUDES = "abs(CAST($1 AS DOUBLE)), abs(CAST($2 AS DOUBLE))"
_WHOLE_NUMBER = f"CASE WHEN typeof($1) IN {_INTEGERS} THEN $1 ELSE error('this function takes a whole number') END"
_MOMENTS = "('DATE', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE', '\"NULL\"')"
_BY = "(CAST($2 AS BIGINT) & CASE WHEN typeof($1) IN ('BIGINT', 'HUGEINT') THEN 63 ELSE 31 END)"
"""By how many bits a number is shifted: Java minds the last five or six bits of the count."""
_BITS = "(CASE WHEN typeof($1) IN ('BIGINT', 'HUGEINT') THEN 18446744073709551616 ELSE 4294967296 END)"
"""How many values the number's type has."""
_SHIFTED = f"(CAST({_WHOLE_NUMBER} AS HUGEINT) * (CAST(1 AS HUGEINT) << {_BY}) + {_BITS} // 2)"
_SPLIT = "string_split($1, $2)"
_JSON_TEXT = r'''"([^"\\]|\\.)*"'''
_JSON_STRICT_TEXT = r'''"([^"\\\x00-\x1f]|\\.)*"'''
_WITHOUT_TEXTS = "regexp_replace($1, '{}', '\"\"', 'g')"
_IS_JSON = (
    f"json_valid($1) AND {_WITHOUT_TEXTS.format(_JSON_TEXT)} = {_WITHOUT_TEXTS.format(_JSON_STRICT_TEXT)} "
    f"AND NOT regexp_matches({_WITHOUT_TEXTS.format(_JSON_TEXT)}, '[NI]|,[ \\t\\r\\n]*[]}}]')"
)
"""DuckDB also takes NaN, Infinity, commas before a bracket, and control characters in texts, for JSON."""
_DISTINCT = "list_filter($1, lambda lake_x, lake_i: list_position($1, lake_x) = lake_i AND list_position($2, lake_x)"
_SHORT = 200
"""Characters up to which an argument is written where it is needed: DuckDB calculates equal ones once."""
TEXTS = {
    "intdiv": f"($1 // CASE WHEN typeof($1) IN {_INTEGERS} AND typeof($2) IN {_INTEGERS} THEN nullif($2, 0) ELSE error("
    "'div takes whole numbers in process; use engine=\"spark\"') END)",
    "left": "CASE WHEN $2 <= 0 THEN left($1, 0) ELSE left($1, $2) END",
    "right": "CASE WHEN $2 <= 0 THEN right($1, 0) ELSE right($1, $2) END",
    "from": f"substring($1, greatest({_START}, 0) + CASE WHEN $2 IS NULL THEN NULL ELSE 1 END)",
    "part": f"CASE WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL THEN NULL WHEN $3 <= 0 OR {_START} + $3 <= 0 THEN "
    f"left($1, 0) ELSE substring($1, greatest({_START}, 0) + 1, {_START} + $3 - greatest({_START}, 0)) END",
    "strposition": "CASE WHEN $3 IS NULL OR $3 < 1 THEN 0 WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN $2 = '' THEN 1 "
    "WHEN strpos(substring($1, $3), $2) = 0 THEN 0 ELSE strpos(substring($1, $3), $2) + $3 - 1 END",
    "extract": "CAST(extract('microsecond' FROM $1) * 0.000001 AS DECIMAL(8, 6))",
    "arraydistinct": "list_filter($1, lambda lake_x, lake_i: list_position($1, lake_x) = lake_i)",
    "arraycontains": "CASE WHEN list_contains($1, $2) THEN TRUE "
    "WHEN $2 IS NOT NULL AND list_count($1) < len($1) THEN NULL ELSE list_contains($1, $2) END",
    "reverse": "array_to_string(list_reverse(regexp_extract_all($1, '(?s).')), '')",
    "alltrue": "CASE WHEN $1 IS NULL THEN NULL WHEN list_contains($1, FALSE) THEN FALSE "
    "WHEN list_count($1) < len($1) THEN NULL ELSE TRUE END",
    "anytrue": "CASE WHEN $1 IS NULL THEN NULL WHEN list_contains($1, TRUE) THEN TRUE "
    "WHEN list_count($1) < len($1) THEN NULL ELSE FALSE END",
    "arrayappend": "CASE WHEN $1 IS NULL THEN NULL ELSE list_append($1, $2) END",
    "arrayrepeat": "repeat([$1], $2)",
    "base64": f"rtrim(regexp_replace(to_base64({_BYTES}), '(.{{76}})', '\\1' || chr(13) || chr(10), 'g'), "
    "chr(13) || chr(10))",
    "arraycompact": "list_filter($1, lambda lake_x: lake_x IS NOT NULL)",
    "arrayexcept": f"CASE WHEN $2 IS NULL THEN NULL ELSE {_DISTINCT} IS NULL) END",
    "arrayintersect": f"CASE WHEN $2 IS NULL THEN NULL ELSE {_DISTINCT} IS NOT NULL) END",
    "arrayjoin": "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE "
    "coalesce(array_to_string(list_filter($1, lambda lake_x: lake_x IS NOT NULL), $2), '') END",
    "arrayjoinnull": "CASE WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL THEN NULL ELSE coalesce("
    "array_to_string(list_transform($1, lambda lake_x: coalesce(CAST(lake_x AS VARCHAR), $3)), $2), '') END",
    "arrayposition": "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE coalesce(list_position($1, $2), 0) END",
    "arrayprepend": "CASE WHEN $1 IS NULL THEN NULL ELSE list_prepend($2, $1) END",
    "arrayremove": "CASE WHEN $2 IS NULL THEN NULL ELSE list_filter($1, lambda lake_x: lake_x IS DISTINCT FROM $2) END",
    "bits": f"(8 * {_OCTETS})",
    "chr": "CASE WHEN $1 < 0 THEN '' ELSE chr(CAST($1 % 256 AS INTEGER)) END",
    "dates": "list_transform($1, lambda lake_x: DATE '1970-01-01' + CAST(lake_x AS INTEGER))",
    "factorial": f"CASE WHEN {_WHOLE_NUMBER} BETWEEN 0 AND 20 THEN "
    "CAST(factorial(CAST(least(greatest($1, 0), 20) AS INTEGER)) AS BIGINT) END",
    "months": "list_transform($1, lambda lake_x: CAST(DATE $2 + to_months(CAST(lake_x AS INTEGER)) AS DATE))",
    "flatten": "CASE WHEN list_count($1) < len($1) THEN NULL ELSE flatten($1) END",
    "hex": f"CASE WHEN typeof($1) IN {_INTEGERS} THEN hex(TRY_CAST(CAST($1 AS VARCHAR) AS BIGINT)) "
    f"ELSE hex({_BYTES}) END",
    "hypot": "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN isinf(CAST($1 AS DOUBLE)) OR isinf(CAST($2 AS DOUBLE)) "
    f"THEN CAST('Infinity' AS DOUBLE) WHEN greatest({_MAGNITUDES}) = 0 THEN CAST(0 AS DOUBLE) ELSE "
    f"greatest({_MAGNITUDES}) * sqrt(1 + pow(least({_MAGNITUDES}) / greatest({_MAGNITUDES}), 2)) END",
    "jsonarraylength": f"CASE WHEN {_IS_JSON} THEN CASE WHEN json_type(CASE WHEN json_valid($1) THEN $1 END) = 'ARRAY' "
    "THEN json_array_length(CASE WHEN json_valid($1) THEN $1 END) END "
    f"WHEN regexp_matches($1, '^[ \\t\\r\\n]*\\[') THEN {_ONLY.format('a text is no JSON as a whole')} END",
    "levenshtein": "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN strlen($1) = length($1) AND "
    "strlen($2) = length($2) THEN levenshtein($1, $2) ELSE "
    f"{_ONLY.format('levenshtein is of ASCII characters in process')} END",
    "mapfromentries": "map_from_entries(CASE WHEN list_count($1) < len($1) THEN NULL ELSE $1 END)",
    "nextday": "($1 + CAST(($2 - isodow($1) + 6) % 7 + 1 AS INTEGER))",
    "json": "CASE WHEN json_valid($1) THEN json_extract_string(CASE WHEN json_valid($1) THEN $1 END, $2) END",
    "lpad": _PADDED.format("lpad"),
    "octets": _OCTETS,
    "overlap": "CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN list_has_any($1, $2) THEN TRUE WHEN len($1) > 0 "
    "AND len($2) > 0 AND list_count($1) + list_count($2) < len($1) + len($2) THEN NULL ELSE FALSE END",
    "pmod": "CASE WHEN $1 % $2 < 0 THEN ($1 % $2 + $2) % $2 ELSE $1 % $2 END",
    "regexpextractall": "list_transform(regexp_extract_all($1, $2, $3), lambda lake_x: coalesce(lake_x, ''))",
    "regexpinstr": "CASE WHEN regexp_matches($1, $2) THEN length(regexp_split_to_array($1, $2)[1]) + 1 "
    "WHEN $1 IS NOT NULL THEN 0 END",
    "rpad": _PADDED.format("rpad"),
    "slice": "CASE WHEN $2 = 0 OR $3 < 0 THEN error('slice starts from 1, or from -1 at the end, and has a length') "
    "WHEN $2 < -len($1) THEN list_slice($1, 1, 0) "
    "ELSE list_slice($1, CASE WHEN $2 < 0 THEN len($1) + $2 + 1 ELSE $2 END, "
    "CASE WHEN $2 < 0 THEN len($1) + $2 + 1 ELSE $2 END + $3 - 1) END",
    "splitpart": "CASE WHEN $3 = 0 THEN error('split_part has no part 0; the first is 1') "
    "WHEN $2 = '' THEN CASE WHEN abs($3) = 1 THEN $1 ELSE left($1, 0) END ELSE split_part($1, $2, $3) END",
    "sha": f"sha1({_BYTES})",
    "sha2": f"sha256({_BYTES})",
    "shiftleft": f"CAST(({_SHIFTED} % {_BITS} + {_BITS}) % {_BITS} - {_BITS} // 2 AS BIGINT)",
    "shiftright": f"CASE WHEN {_WHOLE_NUMBER} < 0 THEN ~((~CAST($1 AS BIGINT)) >> {_BY}) "
    f"ELSE CAST($1 AS BIGINT) >> {_BY} END",
    "substringindex": "CASE WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL THEN NULL WHEN $2 = '' OR $3 = 0 THEN '' "
    f"WHEN $3 > 0 THEN array_to_string(list_slice({_SPLIT}, 1, $3), $2) ELSE "
    f"array_to_string(list_slice({_SPLIT}, greatest(len({_SPLIT}) + $3 + 1, 1), len({_SPLIT})), $2) END",
    "tryadd": "TRY($1 + $2)",
    "trymultiply": "TRY($1 * $2)",
    "trysubtract": "TRY($1 - $2)",
    "unbase64": f"CASE WHEN regexp_full_match({_LINES}, "
    "'([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?') "
    f"THEN from_base64({_LINES}) WHEN $1 IS NOT NULL THEN "
    f"{_ONLY.format('a text is not base 64 in groups of four characters')} END",
    "unhex": "unhex(CASE WHEN regexp_full_match($1, '[0-9A-Fa-f]*') THEN $1 END)",
    "unixtimestamp": f"CASE WHEN typeof($1) IN {_MOMENTS} THEN epoch_us(TRY_CAST($1 AS TIMESTAMP)) // 1000000 "
    "WHEN $1 IS NULL THEN NULL WHEN regexp_full_match(CAST($1 AS VARCHAR), "
    "'[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}') THEN epoch_us(CAST($1 AS TIMESTAMP)) // 1000000 "
    f"ELSE {_ONLY.format('no time, and no text as 2013-01-05 07:00:00')} END",
    "weekday": "(isodow($1) - 1)",
    "sign": "CASE WHEN CAST($1 AS DOUBLE) = CAST('NaN' AS DOUBLE) THEN CAST('NaN' AS DOUBLE) "
    "ELSE CAST(sign($1) AS DOUBLE) END",
}
"""Meanings by name."""


def meaning(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of a meaning, which the writer writes out."""
    return exp.Anonymous(this=PREFIX + name, expressions=[one.copy() for one in arguments])


def cast(node: exp.Cast, kind: str) -> exp.Expr | None:
    """A conversion as Spark makes it; None where DuckDB makes the same."""
    call = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    plain = _plain(node.to.this, node.this.name) if isinstance(node.this, exp.Literal) and node.this.is_string else None
    if node.meta_get(NO_TEXT) and node.to.this not in _WHOLE:
        plain_call = exp.Literal.string(f"{call}($1 AS {kind})")
        return exp.Anonymous(this=PREFIX + "text", expressions=[plain_call, node.this.copy()])
    if plain is not None:  # what the long text below would say of it, for thousands of cells of VALUES
        return exp.Anonymous(
            this=PREFIX + "text", expressions=[exp.Literal.string(f"{call}($1 AS {kind})"), exp.Literal.string(plain)]
        )
    text = _cast_text(node.to.this, kind, call)
    if text is None:
        return None
    return exp.Anonymous(this=PREFIX + "text", expressions=[exp.Literal.string(text), node.this.copy()])


def _plain(target: exp.DType, text: str) -> str | None:
    """What of a literal text becomes a date or time; None for one that takes a closer look, or another type."""
    text = text.strip("\t\n\v\f\r ")
    if target is exp.DType.DATE:
        found = re.fullmatch(f"({_DAY})(?:[ T].*)?", text)
        return found[1] if found else None
    if target not in _TIMES or not re.fullmatch(f"{_DAY}({_CLOCK}{_ZONE}?)?", text):
        return None
    return re.sub(f"(:[0-9.]+){_ZONE}$", r"\1", text) if target is exp.DType.TIMESTAMPNTZ else text


def _cast_text(target: exp.DType, kind: str, call: str) -> str | None:
    """A conversion to a type, whose name is ``kind``, over ``$1``; text that Spark does not read fails, or is null."""

    def read(choices: str, what: str, text: str = _TEXT) -> str:
        return f"WHEN typeof($1) = 'VARCHAR' THEN {call}(CASE {choices} ELSE 'no {what}: ' || {text} END AS {kind})"

    if target is exp.DType.BINARY:
        return _BYTES
    if target in _WHOLE:
        digits = f"WHEN regexp_full_match({_TEXT}, '[+-]?[0-9]+') THEN {_TEXT}"
        return (
            f"CASE WHEN typeof($1) = 'VARCHAR' AND {_PLAIN} THEN {call}(CAST($1 AS VARCHAR) AS {kind}) "
            f"{read(digits, 'whole number')} "
            f"WHEN typeof($1) IN {_FLOATING} THEN {call}(trunc(TRY_CAST($1 AS DOUBLE)) AS {kind}) "
            f"WHEN starts_with(typeof($1), 'DECIMAL') THEN {call}(trunc(TRY_CAST($1 AS DECIMAL(38, 10))) AS {kind}) "
            f"ELSE {call}($1 AS {kind}) END"
        )
    choices = {
        exp.DType.DOUBLE: _floating(),
        exp.DType.FLOAT: _floating(),
        exp.DType.DECIMAL: f"WHEN regexp_full_match({_FOLDED}, '{_NUMBER}') THEN {_TEXT}",
        exp.DType.BOOLEAN: f"WHEN {_FOLDED} IN ('t', 'true', 'y', 'yes', '1') THEN 'true' "
        f"WHEN {_FOLDED} IN ('f', 'false', 'n', 'no', '0') THEN 'false'",
        exp.DType.DATE: f"WHEN regexp_full_match({_TEXT}, '{_DAY}([ T].*)?') "
        f"THEN regexp_extract({_TEXT}, '^[0-9-]+') {_short_days()}",
    }.get(target) or _time(target)
    return f"CASE {read(choices, 'such value')} ELSE {call}($1 AS {kind}) END" if choices else None


def _floating() -> str:
    special = "('nan', 'inf', '+inf', '-inf', 'infinity', '+infinity', '-infinity')"
    return (
        f"WHEN regexp_full_match({_FOLDED}, '{_NUMBER}[df]?') THEN regexp_replace({_FOLDED}, '[df]$', '') "
        f"WHEN {_FOLDED} IN {special} THEN replace({_FOLDED}, '+', '')"
    )


def _short_days() -> str:
    return (
        f"WHEN regexp_full_match({_TEXT}, '[0-9]{{4}}') THEN {_TEXT} || '-01-01' "
        f"WHEN regexp_full_match({_TEXT}, '[0-9]{{4}}-[0-9]{{1,2}}') THEN {_TEXT} || '-01'"
    )


def _time(target: exp.DType) -> str:
    if target in (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMP):
        return f"WHEN regexp_full_match({_TEXT}, '{_DAY}({_CLOCK}{_ZONE}?)?') THEN {_TEXT} {_short_days()}"
    if target is exp.DType.TIMESTAMPNTZ:
        bare = f"regexp_replace({_TEXT}, '(:[0-9.]+){_ZONE}$', '\\1')"
        return f"WHEN regexp_full_match({_TEXT}, '{_DAY}({_CLOCK}{_ZONE}?)?') THEN {bare} {_short_days()}"
    return ""


def text_of(name: str) -> str:
    """A conversion to text as Spark writes it: DuckDB writes floating numbers and times otherwise."""
    number = "TRY_CAST($1 AS DOUBLE)"
    only = "error('only Spark writes so large or small a floating number as text; use engine=\"spark\"')"
    return (
        f"CASE WHEN typeof($1) IN {_FLOATING} THEN CASE WHEN isnan({number}) THEN 'NaN' "
        f"WHEN isinf({number}) THEN CASE WHEN {number} > 0 THEN 'Infinity' ELSE '-Infinity' END "
        f"WHEN {number} <> 0 AND (abs({number}) >= 10000000 OR abs({number}) < 0.001) THEN {only} "
        f"ELSE CAST($1 AS VARCHAR) END "
        f"WHEN typeof($1) = 'TIMESTAMP WITH TIME ZONE' THEN regexp_replace(CAST($1 AS VARCHAR), '[+]00$', '') "
        f"WHEN typeof($1) = 'BLOB' THEN decode(CAST(CAST($1 AS VARCHAR) AS BLOB)) ELSE {name}($1 AS VARCHAR) END"
    )


_ALONE = (exp.Column, exp.Literal, exp.Lambda, exp.Paren, exp.DataType, exp.Var)
"""What stays one thing wherever it stands, and what no parentheses may stand around."""


def written_out(name: str, arguments: Sequence[exp.Expr], texts: Sequence[str]) -> str:
    """The text of a meaning; ``texts`` are the arguments', as they are written."""
    body = TEXTS.get(name.removeprefix(PREFIX))
    if body is None:
        body, arguments, texts = arguments[0].name, arguments[1:], texts[1:]
    if all(
        isinstance(one, exp.Column | exp.Literal) or (len(text) <= _SHORT and one.find(exp.Query) is None)
        for one, text in zip(arguments, texts, strict=True)
    ):
        return _filled(body, [_whole(one, text) for one, text in zip(arguments, texts, strict=True)])
    is_fixed = [isinstance(one, exp.Literal) for one in arguments]  # some functions take nothing else
    named = [
        text if fixed else f"lake_v.a{place}" for place, (text, fixed) in enumerate(zip(texts, is_fixed, strict=True))
    ]
    held = ", ".join(
        f"a{place} := {text}" for place, (text, fixed) in enumerate(zip(texts, is_fixed, strict=True)) if not fixed
    )
    inner = _filled(body, named)
    return f"list_transform([struct_pack({held})], lambda lake_v: {inner})[1]"


def _whole(argument: exp.Expr, text: str) -> str:
    """An argument's text so that no operator of a meaning takes a part of it: ``$1 % $2`` of ``k + 1``."""
    return text if isinstance(argument, _ALONE) else f"({text})"


def _filled(body: str, texts: Sequence[str]) -> str:
    return re.sub(r"\$([1-9])", lambda found: texts[int(found[1]) - 1], f"({body})")
