"""Long work in a thread of its own: the page shows how far it is, and hears a click on Stop meanwhile.

Work inside a fragment would not: streamlit runs a fragment to its end before it looks at the next click in it.
"""

import threading
from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from attnviz.app.shell import address as state
from attnviz.app.shell.markdown import as_sentence, plain

LOOK_SECONDS = 0.4
Say = Callable[[int, int, str], None]  # done, all, what is being done
Work = Callable[[Say], Any]


class Job:
    """Work that is going on in the visitor's session.

    Args:
        wanted: what makes two pieces of work different.
        work: called in a thread with a function to tell it how far it is, which raises when the work shall end.
    """

    def __init__(self, wanted: Hashable, work: Work) -> None:
        self.wanted = wanted
        self.share, self.doing = 0.0, "Starting"
        self.result: Any = None
        self.error: Exception | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    @property
    def going_on(self) -> bool:
        """True until the work has ended, one way or the other."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Have the work end when it next tells how far it is; its result is dropped."""
        self._stopped = True

    def _say(self, done: int, total: int, doing: str) -> None:
        if self._stopped:
            raise _Stopped
        self.share, self.doing = done / max(total, 1), doing

    def _run(self, work: Work) -> None:
        try:
            self.result = work(self._say)
        except _Stopped:
            pass
        except Exception as error:  # raised again where the page looks
            self.error = error


class _Stopped(Exception):
    """Somebody pressed Stop."""


def is_going_on(name: str, wanted: Hashable) -> bool:
    """Return True if the session has work under that name, and it is this."""
    job: Job | None = st.session_state.get(name)
    return job is not None and job.wanted == wanted


def start(name: str, wanted: Hashable, work: Work) -> None:
    """Begin work under a name, in the place of other work there."""
    stop(name)
    st.session_state[name] = Job(wanted, work)


def stop(name: str) -> None:
    """End the work under a name."""
    job: Job | None = st.session_state.get(name)
    if job is not None:
        job.stop()
    st.session_state[name] = None


@st.fragment(run_every=LOOK_SECONDS)
def watch(name: str, *, keep: Callable[[Any], object], key: str) -> None:
    """Show how far the work under a name is, and a button that stops it; the page runs anew when it has ended.

    Args:
        name: of the work.
        keep: called with its result.
        key: of the button.
    """
    job: Job | None = st.session_state.get(name)
    if job is None:  # stopped by the button: all of the page runs, else the browser keeps what stood here
        st.rerun()
    st.button("Stop", key=key, on_click=stop, args=(name,))
    st.progress(job.share, plain(job.doing))
    if job.going_on:
        return
    stop(name)
    if isinstance(job.error, ValueError):
        state.note(as_sentence(str(job.error)))
    elif job.error is not None:
        raise job.error
    else:
        keep(job.result)
    st.rerun()
