"""Take the README's picture: the head of a run's report, by a real Chromium.

.venv/bin/python docs/take_picture.py runs/maths-0/report.html docs/images/report.png
"""

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 1280, 1080
sys.path.insert(0, str(ROOT / "tests" / "report"))

from browser import Browser, find_browser  # noqa: E402


def main() -> None:
    page, picture = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    path = find_browser()
    if path is None:
        sys.exit("no Chromium found: install it, for example with `apt-get install chromium`")
    picture.parent.mkdir(parents=True, exist_ok=True)
    with Browser(path) as browser:
        browser.look(WIDTH, HEIGHT, dark=False)
        browser.open(page)
        browser.wait_for("document.querySelectorAll('canvas, svg').length > 3")
        head = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        shot = browser.call("Page.captureScreenshot", format="png", clip=head)
        picture.write_bytes(base64.b64decode(shot["data"]))
        print(picture)


if __name__ == "__main__":
    main()
