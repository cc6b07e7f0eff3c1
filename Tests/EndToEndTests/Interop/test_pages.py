"""Each example of the documentation has a test, and `page_blocks` finds all of them."""

import re
import subprocess
from pathlib import Path

import pytest

from page_blocks import ELSEWHERE, INTEROP, NOT_RUN, ROOT, Page, blocks_of, commands_in, pages
from page_shell import assert_like, example


def opened() -> list[str]:
    """The pages that the tests of this folder open."""
    tests = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    return [name for text in tests for name in re.findall(r'\bpage\("([^"]+\.md)"\)', text)]


def test_each_page_with_examples_is_opened_by_one_test():
    with_examples = [name for name in pages() if Page(name).left]
    assert len(with_examples) >= 15, with_examples
    assert sorted(opened()) == sorted(with_examples)


def test_each_block_of_the_tables_exists():
    keys = {(name, block.key) for name in pages() for block in Page(name).blocks}
    assert not [key for key in ELSEWHERE | NOT_RUN if key not in keys]
    assert not ELSEWHERE.keys() & NOT_RUN.keys()
    assert all(reason.endswith(".") for reason in NOT_RUN.values())


@pytest.mark.parametrize("key", ELSEWHERE, ids=lambda key: f"{Path(key[0]).name} {key[1][:40]}")
def test_the_file_that_runs_a_block_reads_its_page(key):
    test = (ROOT / ELSEWHERE[key]).read_text()
    # A Python test opens the page; a Swift test compares its code with it.
    assert Path(key[0]).name in test
    assert INTEROP in ELSEWHERE[key] or "```" in test or "PageCode" in test


def test_a_block_without_a_test_fails_its_page():
    page = Page("docs/new.md", "# New\n\nDo:\n\n    carillon --version\n\n```json\n{}\n```\n")
    page.take("carillon --version")
    with pytest.raises(AssertionError, match="no test runs"):
        page.finish()
    page.take("{}")
    page.finish()
    with pytest.raises(AssertionError, match="has no block"):
        page.take("{}")


def test_all_kinds_of_blocks_are_found():
    text = """
Text
    that goes on.

    carillon one \\
        --more

    # A comment
    carillon 'two
    lines'

* ```sh
  curl x
  ```

~~~
plain
~~~

    carillon one \\
        --again
"""
    found = blocks_of("page.md", text)
    assert [(block.key, block.language) for block in found] == [
        ("carillon one \\", ""), ("curl x", "sh"), ("plain", ""), ("carillon one \\ (2)", "")]  # fmt: skip
    assert found[0].commands == ["carillon one \\\n    --more", "carillon 'two\nlines'"]


def test_a_document_without_a_member_of_the_example_is_not_like_it():
    shown = example('{"a": "…", "b": [{"c": 1}], "d": {…}, "e": <value>, "f": […], "g": …}')
    assert shown == {"a": "…", "b": [{"c": 1}], "d": {}, "e": None, "f": [], "g": None}
    real = {"a": "x", "b": [{"c": 2.5}], "d": {"z": 1}, "e": 1, "f": [1], "g": "x", "more": 1}
    assert_like(shown, real)
    for wrong in [{"a": 1}, {"b": [{}]}, {"d": []}, {"b": {}}]:
        with pytest.raises(AssertionError):
            assert_like(shown, real | wrong)
    for name in shown:
        with pytest.raises(AssertionError):
            assert_like(shown, {key: value for key, value in real.items() if key != name})


def test_each_command_in_a_sentence_exists_with_its_options(executable):
    """Such a command lacks arguments, so that only its help can be asked for."""
    commands = sorted({command for name in pages() for command in commands_in((ROOT / name).read_text())})
    assert len(commands) >= 20, commands
    for command in commands:
        words = command.split()[1:]
        path = words[: next((index for index, word in enumerate(words) if not re.fullmatch("[a-z]+", word)), len(words))]
        done = subprocess.run([executable, *path, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert f"USAGE: carillon {' '.join(path)}".strip() in done.stdout, f"{command}: {done.stdout}"
        for option in re.findall(r"--[a-z][a-z-]*", command):
            assert option in done.stdout, f"{command}: {option} is not in {done.stdout}"


def test_commands_in_sentences_are_found():
    text = "Use `carillon serve\n--dev`, not `serve`.\n```\n`carillon backup`\n```\n`carillon key 1\\n` is signed.\n"
    assert commands_in(text) == ["carillon serve --dev"]
