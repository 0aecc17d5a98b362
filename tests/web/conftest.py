from conftest_web import folder, no_proxy

__all__ = ["folder", "no_proxy"]
