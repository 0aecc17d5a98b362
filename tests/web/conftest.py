from conftest_web import browser, folder, no_proxy

__all__ = ["browser", "folder", "no_proxy"]
