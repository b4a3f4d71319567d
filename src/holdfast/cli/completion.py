"""`holdfast completion`: a script that completes commands and options in a shell without starting the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from holdfast.cli.main import words
from holdfast.cli.runner import example

SHELLS = ("bash", "zsh", "fish")
# The script contains all words, so that typing starts no Python.
_BASH = """_holdfast() {{
  local said
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    said="{names}"
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{pairs}
    *) case "${{COMP_WORDS[1]}}" in
{singles}
       esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$said" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _holdfast holdfast
"""


@example("completion bash > ~/.local/share/bash-completion/completions/holdfast")
def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")]) -> None:
    """Print the shell script that completes holdfast's commands and options."""
    if shell not in SHELLS:
        raise typer.BadParameter(f"write one of {', '.join(SHELLS)}", param_hint="SHELL")
    print(script(shell, words()), end="")


def script(shell: str, tree: Mapping[str, Sequence[str]]) -> str:
    """Return the script for a shell; `tree` maps a command, or a command and its subcommand, to its completions."""
    if shell == "fish":
        return _fish(tree)
    names = " ".join(name for name in tree if " " not in name)
    pairs = [f'      "{name}") said="{" ".join(after)}" ;;' for name, after in tree.items() if " " in name]
    singles = [f'        {name}) said="{" ".join(after)}" ;;' for name, after in tree.items() if " " not in name]
    bash = _BASH.format(names=names, pairs="\n".join(pairs), singles="\n".join(singles))
    # zsh reads bash completions after bashcompinit, so one script serves both.
    return bash if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{bash}"


def _fish(tree: Mapping[str, Sequence[str]]) -> str:
    lines = [f"complete -c holdfast -n __fish_use_subcommand -f -a '{' '.join(n for n in tree if ' ' not in n)}'"]
    for name, after in tree.items():
        seen = " ; and ".join(f"__fish_seen_subcommand_from {part}" for part in name.split())
        plain = [word for word in after if not word.startswith("-")]
        if plain:
            lines.append(f"complete -c holdfast -n '{seen}' -f -a '{' '.join(plain)}'")
        lines += [f"complete -c holdfast -n '{seen}' -l {word[2:]}" for word in after if word.startswith("--")]
    return "\n".join(lines) + "\n"
