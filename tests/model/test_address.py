"""The text of an address has no credentials; its url has them, for requests."""

import pytest

from sim.model.text import Address


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://user:pass@host:8081/x?token=1", "http://host:8081/x"),
        ("https://us%40er:p@ss:w@host", "https://host"),
        ("http://[::1]:8081", "http://[::1]:8081"),
        ("http://host/a@b", "http://host/a@b"),
    ],
)
def test_the_text_of_an_address(url, text):
    assert (str(Address(url)), f"{Address(url)!r}", Address(url).url) == (text, f"Address({text!r})", url)
