"""Store what addresses show: `python -m tests.ui.store_addresses`.

`stored_addresses.json` holds an entry for each address, with the page and what the page showed, and the scenes of the
shipped decks. The program works out what an entry doesn't have yet, so a new address is an entry without "shows", and
one whose picture is meant to change is stored again by taking its "shows" out. A model called `tiny:NAME` is the tiny
model of that name, made by `tests.tiny` in a folder.
"""

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnviz.app.talk.scenes import show_scene
from attnviz.app.talk.shipped import shipped_decks
from tests import tiny
from tests.ui.conftest import Visitor
from tests.ui.shown import scene_shown, shown

STORE = Path(__file__).parent / "stored_addresses.json"
TINY = "tiny:"


def read_store() -> dict[str, Any]:
    """Return the stored addresses, each with "page", "address" and "shows", and "scenes" by deck."""
    return json.loads(STORE.read_text(encoding="utf-8"))


def open_address(entry: dict[str, Any], folder_of: Callable[[str], Path], visit: Callable[..., Visitor]) -> Any:
    """Open an entry's address as a visitor does who got the link, and return what it shows."""
    address = dict(entry["address"])
    model = address.get("model", "")
    if not model.startswith(TINY):
        return shown(visit(page=entry["page"], **address))
    folder = str(folder_of(model.removeprefix(TINY)))
    found = shown(visit(page=entry["page"], **address | {"model": folder}))
    named = json.dumps(found).replace(folder, model)
    return json.loads(re.sub(rf"(?<!:)\b{Path(folder).name}\b", model, named))


def main() -> None:
    """Work out what is missing and write the file."""
    store = read_store()
    with tempfile.TemporaryDirectory() as folder:
        for entry in store["addresses"]:
            if "shows" not in entry:
                print(entry["page"] or "explore", entry["address"], flush=True)
                entry["shows"] = open_address(entry, lambda name: tiny.build(name, Path(folder) / name), Visitor)
    for name, deck in shipped_decks().items():
        if name not in store["scenes"]:
            store["scenes"][name] = [scene_shown(show_scene(scene, "dark")) for scene in deck.scenes]
    write_store(store)


def write_store(store: dict[str, Any]) -> None:
    """Write the file with a line for each address, each chart, each scene."""
    addresses = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in store["addresses"])
    scenes = json.dumps(store["scenes"], ensure_ascii=False, separators=(",", ":")).replace('{"title"', '\n{"title"')
    STORE.write_text(f'{{"addresses": [\n{addresses}\n],\n"scenes": {scenes}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
