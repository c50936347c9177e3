"""`python -m fencepost`: the program."""

import os
import subprocess
import sys

from . import program


def main() -> int:
    command = [program(), *sys.argv[1:]]
    if sys.platform == "win32":
        return subprocess.run(command).returncode
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
