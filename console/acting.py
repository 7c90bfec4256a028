"""Buttons that change something: requested, described in a sentence, confirmed, done. The library checks each step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

import background
import shell
import who
from lakehouse.actions.actions import Proposal
from lakehouse.actions.roles import NEEDS, Action
from lakehouse.errors import LakehouseError
from shown import shown

_PROPOSAL, _DONE = "acting.proposal", "acting.done"


def show_result() -> None:
    """Show the result of the last action, once. Call it at the top of a page with buttons."""
    headline, line = st.session_state.pop(_DONE, ("", ""))
    if headline:
        st.success(headline, icon=":material/check:")
        st.text(shown(line))
    for what, error in background.failures().items():
        st.error("An action that was started has failed.", icon=":material/error:")
        st.code(shown(f"{what}\n{error}", 2_000), language=None, wrap_lines=True)


def offer(
    action: Action,
    label: str,
    propose: Callable[[], Proposal],
    *,
    key: str,
    icon: str | None = None,
    describe: Callable[[Any], str] = lambda _: "",
    preview: Callable[[], Callable[[], None]] | None = None,
    is_long: bool = False,
) -> None:
    """A button, disabled without the role; after a click, it shows what will happen, and a button to confirm.

    ``label`` is the console's own text; ``describe`` turns the result into a line of text. ``key`` says what the action
    is about, so that a request for one thing is not confirmed for another. ``preview`` looks, once, at what would
    change, and returns what draws it above the button to confirm. An action that ``is_long`` continues in the
    background, and ``describe`` gets None.
    """
    may = who.actions().may(action)
    why_not = None if may else f"Takes the role of {NEEDS[action].value}."
    if st.button(label, key=key, icon=icon, disabled=not may, help=why_not):
        try:
            proposal = propose()
            st.session_state[_PROPOSAL] = (key, proposal, None if preview is None else preview())
        except LakehouseError as error:
            st.session_state.pop(_PROPOSAL, None)
            shell.failed(error)
    asked, proposal, drawn = st.session_state.get(_PROPOSAL, (None, None, None))
    if asked == key and proposal is not None:
        _confirm(proposal, key, describe, drawn, is_long=is_long)


def _confirm(
    proposal: Proposal,
    key: str,
    describe: Callable[[Any], str],
    draw_preview: Callable[[], None] | None,
    *,
    is_long: bool,
) -> None:
    with st.container(border=True, key=f"{key} asked"):
        st.text(proposal.sentence)
        if draw_preview is not None:
            draw_preview()
        confirmed = proposal.word
        if proposal.is_final:
            st.caption("This cannot be undone. Type the word to confirm it:")
            st.code(proposal.word, language=None)
            confirmed = st.text_input("The word", key=f"{key} word", label_visibility="collapsed")
        with st.container(horizontal=True):
            is_confirmed = st.button("Confirm", key=f"{key} yes", type="primary")
            is_left = st.button("Cancel", key=f"{key} no")
        if is_left:
            del st.session_state[_PROPOSAL]
            st.rerun()
        if is_confirmed:
            try:
                done = _begin(proposal, confirmed) if is_long else who.actions().carry_out(proposal, confirmed)
            except LakehouseError as error:
                shell.failed(error)
                return
            del st.session_state[_PROPOSAL]
            st.session_state[_DONE] = ("Begun." if is_long else "Done.", describe(done))
            st.rerun()


def _begin(proposal: Proposal, confirmed: str) -> None:
    actions = who.actions()
    actions.check(proposal, confirmed)
    background.begin(proposal.sentence, partial(actions.carry_out, proposal, confirmed))
