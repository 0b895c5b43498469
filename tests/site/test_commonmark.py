"""Lists as code hosts show them, also where Python-Markdown would read them otherwise."""

import pytest

from tools.site.commonmark import adapted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Words:\n- one\n- two\n", "Words:\n\n- one\n- two\n"),
        (
            "1. one\n   goes on\n   - inner\n     goes on\n2. two\n",
            "1. one\n    goes on\n    - inner\n        goes on\n2. two\n",
        ),
        ("- one\n\n  in one\n\nafter\n", "- one\n\n    in one\n\nafter\n"),
        ("- one\nlazy\n\n## Head\n- two\n", "- one\n    lazy\n\n## Head\n\n- two\n"),
        ("```sh\nwords\n- no list\n```\n", "```sh\nwords\n- no list\n```\n"),
        ("- one:\n  ```sh\n  a\n    b\n  ```\n- two\n", "- one:\n\n    ```sh\n    a\n      b\n    ```\n- two\n"),
        ("````\n```python\n- x\n````\n", "````\n```python\n- x\n````\n"),
    ],
)
def test_lists_are_adapted(text: str, expected: str) -> None:
    assert adapted(text) == expected
