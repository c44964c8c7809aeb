"""Long work in a thread of its own: the page shows how far it is, and hears a click on Stop meanwhile.

Work inside a fragment would not: streamlit runs a fragment to its end before it looks at the next click in it.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from attnviz.app.shell import address as state
from attnviz.app.shell.address import run_again
from attnviz.app.shell.markdown import as_sentence, plain

LOOK_SECONDS = 0.4
ALONE_SECONDS = 60.0  # for work that would be in the way of others if it went on unseen
Say = Callable[[int, int, str], None]  # done, all (0: of nothing that could be counted), what is being done
Work = Callable[[Say], Any]


class Job:
    """Work that is going on in the visitor's session.

    Args:
        wanted: what makes two pieces of work different.
        work: called in a thread with a function to tell it how far it is, which raises when the work shall end.
        on_stop: called when it shall end, for what can't wait until the work tells how far it is.
        alone: seconds without anybody looking after which it ends itself; None: it goes on.
    """

    def __init__(
        self, wanted: Hashable, work: Work, *, on_stop: Callable[[], None] | None = None, alone: float | None = None
    ) -> None:
        self.wanted = wanted
        self.share: float | None = 0.0
        self.doing = "Starting"
        self.result: Any = None
        self.error: Exception | None = None
        self.stopped = False
        self._on_stop, self._alone, self._seen = on_stop, alone, time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    @property
    def going_on(self) -> bool:
        """True until the work has ended, one way or the other; whoever asks counts as somebody who looks."""
        self._seen = time.monotonic()
        return self._thread.is_alive()

    def stop(self) -> None:
        """Have the work end when it next tells how far it is; its result is dropped."""
        self.stopped = True
        if self._on_stop is not None:
            self._on_stop()

    def _say(self, done: int, total: int, doing: str) -> None:
        if self._alone is not None and time.monotonic() - self._seen > self._alone:
            self.stop()
        if self.stopped:
            raise _Stopped
        self.share, self.doing = done / total if total else None, doing

    def _run(self, work: Work) -> None:
        try:
            self.result = work(self._say)
        except _Stopped:
            pass
        except Exception as error:  # raised again where the page looks
            self.error = error


class _Stopped(Exception):
    """Somebody pressed Stop, or nobody looks any more."""


def is_going_on(name: str, wanted: Hashable) -> bool:
    """Return True if the session has work under that name, and it is this."""
    job: Job | None = st.session_state.get(name)
    return job is not None and job.wanted == wanted


def start(name: str, wanted: Hashable, work: Work, **options: Any) -> None:
    """Begin work under a name, in the place of other work there; the options are those of `Job`."""
    stop(name)
    st.session_state[name] = Job(wanted, work, **options)


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
        keep: called with its result, unless it was stopped.
        key: of the button.
    """
    job: Job | None = st.session_state.get(name)
    if job is None:  # stopped by the button: all of the page runs, else the browser keeps what stood here
        run_again()
    st.button("Stop", key=key, on_click=stop, args=(name,))
    if job.share is None:
        st.info(plain(job.doing))
    else:
        st.progress(job.share, plain(job.doing))
    if job.going_on:
        return
    st.session_state[name] = None
    if isinstance(job.error, ValueError):
        state.note(as_sentence(str(job.error)))
    elif job.error is not None:
        raise job.error
    elif not job.stopped:
        keep(job.result)
    run_again()
