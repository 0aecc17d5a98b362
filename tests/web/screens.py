"""The page in a browser, as a person uses it."""

from __future__ import annotations

from typing import Any

from conftest_web import until


class Screen:
    """One tab. `trouble` collects what the browser complains about."""

    def __init__(self, browser: Any, address: str, context: Any = None, **options: Any) -> None:
        self.context = context or browser.new_context(
            viewport=options.pop("viewport", {"width": 1280, "height": 800}), **options
        )
        self.address = address
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        self.page.on(
            "console", lambda line: self.trouble.append(line.text) if line.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        origin = address.partition("#")[0].rstrip("/")
        self.page.on(
            "request",
            lambda sent: self.trouble.append(sent.url) if not sent.url.startswith((origin, "blob:", "data:")) else None,
        )
        self.page.goto(address)

    def run(self, script: str) -> Any:
        return self.page.evaluate(script)

    @property
    def id(self) -> str | None:
        """The sample on screen."""
        found = self.run(
            "(() => { const stage = document.querySelector('.stage'); "
            "return stage?.querySelector('.outline') ? null : stage?.dataset.id ?? null })()"
        )
        return None if found is None else str(found)

    @property
    def dot(self) -> str:
        return str(self.run("document.querySelector('.saved')?.textContent"))

    @property
    def messages(self) -> list[str]:
        return list(self.run("[...document.querySelectorAll('.message')].map(each => each.innerText)"))

    def ready(self) -> str:
        """Waits for a sample."""
        return str(until(lambda: self.id, what="a sample on screen"))

    def saved(self) -> None:
        until(lambda: self.dot == "saved", what="saving")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def label(self, truth: dict[str, str], keys: dict[str, str], n: int) -> list[str]:
        """Labels n samples by keys, each as it is; their ids."""
        done = []
        for _ in range(n):
            id = self.ready()
            done.append(id)
            self.press(keys[truth[id]])
            until(lambda id=id: self.id != id, what="the next sample")
        return done

    def times(self) -> list[float]:
        """Milliseconds from key to next sample, of every answer."""
        return list(self.run("performance.getEntriesByName('ally answer').map(each => each.duration)"))

    def close(self) -> None:
        self.context.close()
