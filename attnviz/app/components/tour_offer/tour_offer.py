"""What the tour needs of the browser: who was asked already, and the stop's picture scrolled into sight."""

from attnviz.app.components.bridge.bridge import unseen


def in_browser(*, asked: bool, stop: int | None, target: str, edge: str, key: str) -> None:
    """Tell the browser where the tour is.

    The style sheet (shell/app.css) shows the offer only to somebody whose browser doesn't remember an answer.

    Args:
        asked: the visitor has answered the offer; remembered in the browser from then on.
        stop: number of the stop, None if no tour runs.
        target: key of the element to scroll to when the stop is new.
        edge: "start" or "end" of the window that the element goes to.
        key: the component's name, unique on the page.
    """
    _tour(key=key, data={"asked": asked, "stop": stop, "target": target, "edge": edge})


_tour = unseen("tour", "tour_offer/tour_offer.js")
