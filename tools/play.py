"""Makes the page of `docs/play` one file: the module, the scripts and the style inside.

    cargo play && python3 tools/play.py [FOLDER]

The page then works without a server. FOLDER is target/play if absent.
"""

import base64
import gzip
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "play"
MODULE = ROOT / "target" / "wasm32-unknown-unknown" / "play" / "play.wasm"
LARGEST = 5_000_000


def main() -> int:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "play"
    if not MODULE.is_file():
        print(f"{MODULE} is not there: run `cargo play` first", file=sys.stderr)
        return 1
    packed = gzip.compress(MODULE.read_bytes(), 9, mtime=0)
    page = (SOURCE / "index.html").read_text(encoding="utf-8")
    parts = {
        "/*{{style}}*/": (SOURCE / "play.css").read_text(encoding="utf-8"),
        "//{{worker}}": (SOURCE / "worker.js").read_text(encoding="utf-8"),
        "//{{script}}": (SOURCE / "play.js").read_text(encoding="utf-8"),
        "{{module}}": base64.b64encode(packed).decode("ascii"),
    }
    for mark, text in parts.items():
        if page.count(mark) != 1 or "</script" in text:
            print(f"docs/play/index.html must have {mark} once", file=sys.stderr)
            return 1
        page = page.replace(mark, text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page, encoding="utf-8")
    print(f"{folder / 'index.html'}: {len(packed):,} bytes of module, compressed")
    if len(packed) > LARGEST:
        print(f"the module is larger than {LARGEST:,} bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
