"""What the tools of the documentation take for code, links and examples."""

import doctest

import pytest

from tools.docs_site import markdown
from tools.docs_site.doctests import fenced


def test_examples_of_the_tools_run() -> None:
    assert doctest.testmod(markdown).failed == 0


def test_an_example_in_a_docstring_becomes_a_block() -> None:
    text = "Add.\n\n>>> 1 + 1\n2\n>>> for one in 'a':\n...     one\n'a'\n\nThat is all.\n"
    assert (
        fenced(text) == "Add.\n\n```pycon\n>>> 1 + 1\n2\n>>> for one in 'a':\n...     one\n'a'\n```\n\nThat is all.\n"
    )


def test_a_fence_with_other_words_is_refused() -> None:
    with pytest.raises(ValueError, match="only not-run"):
        markdown.blocks('```sh title="a"\nls\n```\n')


def test_a_reason_does_not_reach_the_site() -> None:
    assert markdown.without_marks('a\n\n```sh not-run="why"\nls\n```\n') == "a\n\n```sh\nls\n```\n"


def test_a_block_within_a_longer_fence_is_text() -> None:
    (block,) = markdown.blocks("````text\n```sh\nls\n```\n````\n")
    assert block.language == "text"
