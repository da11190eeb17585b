"""Scripts in recipes: the text is the recipe author's, every value arrives as data.

A value is never put into the script. Each `{{ … }}` becomes `"${1}"`, `"${2}"`, … and the values follow the script as
arguments of /bin/sh, so that no quote, `$()` or newline in them can be read as code.
"""

from __future__ import annotations

import re

from stationmaster.recipes.templating import Names, TemplateFault, Values, check_template, render

_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def script_arguments(template: str, values: Values) -> tuple[str, ...]:
    """The command that runs the script with its values.

    >>> script_arguments("mkdir -p {{ output.dir }}/x", {"output": {"dir": "/a $(id)"}})
    ('/bin/sh', '-euc', 'mkdir -p "${1}"/x', 'sh', '/a $(id)')
    """
    found = _VALUE.findall(template)
    script = template
    for number, text in enumerate(found, start=1):
        script = script.replace(text, f'"${{{number}}}"', 1)
    return ("/bin/sh", "-euc", script, "sh", *(render(text, values) for text in found))


def check_script(template: str, names: Names) -> None:
    """Raise TemplateFault unless every value of the script is known and stands outside quotes."""
    if "{%" in template or "{#" in template:
        raise TemplateFault("a script may contain values but no other template syntax; use the shell's own `if`")
    check_template(template, names)
    for match in _VALUE.finditer(template):
        if quote := _open_quote(_VALUE.sub("", template[: match.start()])):
            raise TemplateFault(
                f"`{match[0]}` is inside {quote}…{quote}; write it outside the quotes, because it is quoted already"
            )


def _open_quote(script: str) -> str:
    """The quote that the end of `script` is inside of, or an empty text."""
    quote, characters = "", iter(script)
    for character in characters:
        if character == "\\" and quote != "'":
            next(characters, None)
        elif not quote and character in "'\"":
            quote = character
        elif character == quote:
            quote = ""
    return quote
