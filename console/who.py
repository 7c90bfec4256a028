"""Who uses the console, and what they may do.

Where a login is configured (OpenID Connect, in Streamlit's secrets), people log in, and the file that LAKEHOUSE_ROLES
names says who is more than a reader. Without a login, everyone on this machine has the role with which the console was
started.
"""

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAuthError

import opened
from lakehouse.actions.actions import Actions
from lakehouse.actions.reach import check_reach, has_login
from lakehouse.actions.roles import Role, read_role, read_roles, role_of
from senders import check_sender


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the console: the name that signs their actions, and their role."""

    name: str
    role: Role


def let_in() -> None:
    """Ask users who are not logged in to log in, and draw nothing else.

    Raises `Forbidden` if nobody may use the page.
    """
    login = has_login(Path(str(path)) for path in st.get_option("secrets.files"))
    check_reach(st.get_option("server.address"), login=login)
    check_sender(st.context.headers.to_dict(), login=login)
    if not login or st.user.get("is_logged_in"):
        return
    st.title("Lakehouse", anchor=False)
    st.info("Log in to see this lake.", icon=":material/login:")
    if st.button("Log in", type="primary", key="log in"):
        try:
            st.login()
        except StreamlitAuthError as error:
            st.error("The login is not set up.", icon=":material/error:")
            st.code(str(error), language=None, wrap_lines=True)
            st.markdown('`pip install "streamlit[auth]"`, and look at `.streamlit/secrets.toml`, section `[auth]`.')
    st.stop()


def person() -> Person:
    """The current user. Raises `InvalidInput` if a role or the roles file cannot be read."""
    if st.user.get("is_logged_in"):
        claims: Mapping[str, Any] = st.user.to_dict()
        file = os.environ.get("LAKEHOUSE_ROLES")
        return Person(_named(claims), role_of(claims, read_roles(Path(file)) if file else {}))
    return Person(_on_this_machine(), read_role(os.environ.get("LAKEHOUSE_CONSOLE_ROLE") or Role.READER))


def reader() -> str:
    """Whose queries count together: a login's, else those of one browser at one address."""
    here = person()
    if st.user.get("is_logged_in"):
        return here.name
    return f"{here.name} {st.context.ip_address} {st.context.cookies.get('_streamlit_xsrf', '')}"


def actions() -> Actions:
    """The actions of this user on the lake."""
    here = person()
    return Actions(opened.lake(), role=here.role, by=here.name)


def _named(claims: Mapping[str, Any]) -> str:
    """A name that nobody else can have: a verified e-mail address, or the login's own subject."""
    if claims.get("email_verified") is True and claims.get("email"):
        return str(claims["email"])[:200]
    return f"{claims.get('iss', '')} {claims.get('sub', '')}"[:200]


def _on_this_machine() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        name = f"user {os.getuid()}"
    return f"{name}@{socket.gethostname()}"[:200]
